package istio

import (
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/yaml"

	telemetryv1 "github.com/meshctl/meshctl/engine/api/telemetry/v1"
	"github.com/meshctl/meshctl/engine/snapshot"
)

// TestUncounted: what a pod of namespace shop with the label app: cart does not count, by the Telemetries of its cluster, the oldest first.
// The rules are those of istiod (pilot/pkg/model, telemetry.go and telemetry_test.go).
func TestUncounted(t *testing.T) {
	t.Parallel()
	const disableAll, client, server = "overrides: [{disabled: true}]", "overrides: [{match: {mode: CLIENT}, disabled: true}]", "overrides: [{match: {mode: SERVER}, disabled: true}]"
	telemetry := func(at, spec string) *telemetryv1.Telemetry {
		namespace, name, _ := strings.Cut(at, "/")
		o := &telemetryv1.Telemetry{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name}}
		require.NoError(t, yaml.UnmarshalStrict([]byte(spec), &o.Spec), spec)
		return o
	}
	for name, c := range map[string]struct {
		objects [][2]string
		// want are requests sent, connections opened, requests got and connections got.
		want [4]string
	}{
		"nothing":             {nil, [4]string{}},
		"both sides":          {[][2]string{{"istio-system/all", "metrics: [{" + disableAll + "}]"}}, [4]string{"istio-system/all", "istio-system/all", "istio-system/all", "istio-system/all"}},
		"one side":            {[][2]string{{"shop/a", "metrics: [{" + client + "}]"}}, [4]string{"shop/a", "shop/a", "", ""}},
		"the other side":      {[][2]string{{"shop/a", "metrics: [{" + server + "}]"}}, [4]string{"", "", "shop/a", "shop/a"}},
		"both by name":        {[][2]string{{"shop/a", "metrics: [{overrides: [{match: {mode: CLIENT_AND_SERVER, metric: ALL_METRICS}, disabled: true}]}]"}}, [4]string{"shop/a", "shop/a", "shop/a", "shop/a"}},
		"one metric":          {[][2]string{{"shop/a", "metrics: [{overrides: [{match: {metric: REQUEST_COUNT}, disabled: true}]}]"}}, [4]string{"shop/a", "", "shop/a", ""}},
		"connections":         {[][2]string{{"shop/a", "metrics: [{overrides: [{match: {metric: TCP_OPENED_CONNECTIONS, mode: SERVER}, disabled: true}]}]"}}, [4]string{"", "", "", "shop/a"}},
		"another metric":      {[][2]string{{"shop/a", "metrics: [{overrides: [{match: {metric: REQUEST_SIZE}, disabled: true}, {match: {customMetric: mine}, disabled: true}]}]"}}, [4]string{}},
		"only access logs":    {[][2]string{{"shop/a", "metrics: []"}}, [4]string{}},
		"another namespace":   {[][2]string{{"other/a", "metrics: [{" + disableAll + "}]"}}, [4]string{}},
		"another workload":    {[][2]string{{"shop/a", "{selector: {matchLabels: {app: book}}, metrics: [{" + disableAll + "}]}"}}, [4]string{}},
		"the workload":        {[][2]string{{"shop/a", "{selector: {matchLabels: {app: cart}}, metrics: [{" + server + "}]}"}}, [4]string{"", "", "shop/a", "shop/a"}},
		"a selector of none":  {[][2]string{{"shop/a", "{selector: {}, metrics: [{" + server + "}]}"}}, [4]string{"", "", "shop/a", "shop/a"}},
		"for a gateway":       {[][2]string{{"shop/a", "{targetRefs: [{group: gateway.networking.k8s.io, kind: Gateway, name: g}], metrics: [{" + disableAll + "}]}"}}, [4]string{}},
		"selected in root":    {[][2]string{{"istio-system/a", "{selector: {matchLabels: {app: cart}}, metrics: [{" + disableAll + "}]}"}}, [4]string{}},
		"the oldest counts":   {[][2]string{{"shop/b", "metrics: []"}, {"shop/a", "metrics: [{" + disableAll + "}]"}}, [4]string{}},
		"enabled again":       {[][2]string{{"istio-system/a", "metrics: [{" + disableAll + "}]"}, {"shop/b", "metrics: [{overrides: [{disabled: false}]}]"}}, [4]string{}},
		"one side again":      {[][2]string{{"istio-system/a", "metrics: [{" + disableAll + "}]"}, {"shop/b", "metrics: [{overrides: [{match: {mode: SERVER}, disabled: false}]}]"}}, [4]string{"istio-system/a", "istio-system/a", "", ""}},
		"by a label":          {[][2]string{{"istio-system/a", "metrics: [{" + client + "}]"}, {"shop/b", "metrics: [{overrides: [{match: {metric: REQUEST_SIZE}}]}]"}}, [4]string{}},
		"one stays disabled":  {[][2]string{{"istio-system/a", "metrics: [{overrides: [{match: {metric: REQUEST_COUNT}, disabled: true}, {disabled: true}]}]"}, {"shop/b", "metrics: [{overrides: [{match: {metric: REQUEST_SIZE}, disabled: false}]}]"}}, [4]string{"istio-system/a", "", "istio-system/a", ""}},
		"the workload's last": {[][2]string{{"shop/w", "{selector: {matchLabels: {app: cart}}, metrics: [{" + client + "}]}"}, {"shop/n", "metrics: [{overrides: [{disabled: false}]}]"}, {"istio-system/r", "metrics: [{" + server + "}]"}}, [4]string{"shop/w", "shop/w", "", ""}},
		"two of a workload": {[][2]string{{"shop/1", "{selector: {matchLabels: {app: cart}}, metrics: [{" + disableAll + "}]}"}, {"shop/2", "{selector: {matchLabels: {app: cart}}, metrics: [{overrides: [{match: {mode: CLIENT}, disabled: false}]}]}"}},
			[4]string{"", "", "shop/1", "shop/1"}},
		"another provider":       {[][2]string{{"shop/a", "metrics: [{providers: [{name: stackdriver}], " + disableAll + "}, {providers: [{name: prometheus}]}]"}}, [4]string{}},
		"the provider by name":   {[][2]string{{"shop/a", "metrics: [{providers: [{name: prometheus}], " + server + "}]"}}, [4]string{"", "", "shop/a", "shop/a"}},
		"one of two providers":   {[][2]string{{"shop/a", "metrics: [{providers: [{name: prometheus}], " + server + "}, {providers: [{name: stackdriver}, {name: prometheus}]}]"}}, [4]string{"", "", "shop/a", "shop/a"}},
		"the provider before":    {[][2]string{{"istio-system/a", "metrics: [{providers: [{name: mine}]}]"}, {"shop/b", "metrics: [{" + client + "}]"}}, [4]string{"shop/b", "shop/b", "", ""}},
		"a provider is replaced": {[][2]string{{"istio-system/a", "metrics: [{" + disableAll + "}]"}, {"shop/b", "metrics: [{providers: [{name: mine}]}]"}}, [4]string{}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			cluster := &snapshot.Cluster{Name: "west"}
			for i, of := range c.objects {
				o := telemetry(of[0], of[1])
				o.CreationTimestamp = metav1.NewTime(time.Unix(int64(1000+i), 0))
				reads[snapshot.Telemetry](o)
				cluster.OfMeshes[snapshot.Telemetry] = append(cluster.OfMeshes[snapshot.Telemetry], o)
			}
			got := uncounted(cluster)(&snapshot.MeshPlan{RootNamespace: "istio-system"}, "shop", map[string]string{"app": "cart"})
			var have [4]string
			for i, ref := range []snapshot.Ref{got.Calls.Requests, got.Calls.Connections, got.Serves.Requests, got.Serves.Connections} {
				if ref != (snapshot.Ref{}) {
					assert.Equal(t, snapshot.Telemetry, ref.Kind)
					assert.Equal(t, "west", ref.Cluster)
					have[i] = ref.Namespace + "/" + ref.Name
				}
			}
			assert.Equal(t, c.want, have)
			assert.Empty(t, got.Unread)
		})
	}
}

// TestUncountedByRevision: a Telemetry of another control plane decides nothing, and what could not be read may disable something.
func TestUncountedByRevision(t *testing.T) {
	t.Parallel()
	disabled := true
	o := &telemetryv1.Telemetry{
		ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "a", Labels: map[string]string{revisionKey: "canary"}},
		Spec:       telemetryv1.Spec{Metrics: []telemetryv1.Metrics{{Overrides: []telemetryv1.Override{{Disabled: &disabled}}}}},
	}
	cluster := &snapshot.Cluster{Name: "west", Denied: []snapshot.Kind{snapshot.Telemetry}}
	cluster.OfMeshes[snapshot.Telemetry] = []snapshot.APIObject{o}
	got := uncounted(cluster)(&snapshot.MeshPlan{RootNamespace: "istio-system"}, "shop", nil)
	assert.Equal(t, snapshot.UncountedSide{}, got.Calls)
	assert.Contains(t, got.Unread, "meshctl may not read")
	cluster.Unsent = cluster.Denied
	assert.Contains(t, uncounted(cluster)(&snapshot.MeshPlan{}, "shop", nil).Unread, "the agent is too old to send")
}
