package istio

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	istionetworkingv1 "istio.io/client-go/pkg/apis/networking/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/meshctl/meshctl/engine/snapshot"
)

// TestConnectionFor: which rule callers use, and what it says of TLS, down to subsets and ports.
func TestConnectionFor(t *testing.T) {
	t.Parallel()
	const host = "cart.shop.svc.cluster.local"
	type rule struct{ namespace, name, spec string }
	for name, tt := range map[string]struct {
		rules  []rule // the oldest first
		subset string
		want   snapshot.HandConnection
	}{
		"none":           {rules: []rule{{"other", "a", "host: " + host}}},
		"says nothing":   {rules: []rule{{"shop", "a", "host: cart"}}, want: snapshot.HandConnection{Place: snapshot.HandBeside}},
		"of the callers": {rules: []rule{{"shop", "a", "host: cart, trafficPolicy: {tls: {mode: SIMPLE}}"}, {"front", "b", "host: " + host + ", trafficPolicy: {tls: {mode: DISABLE}}"}}, want: snapshot.HandConnection{Settings: true, TLS: snapshot.ClientPlain, Mode: "TLS mode DISABLE", Place: snapshot.HandInstead}},
		"of the service": {rules: []rule{{"istio-system", "a", "host: '*.local', trafficPolicy: {tls: {mode: DISABLE}}"}, {"shop", "b", "host: cart, trafficPolicy: {tls: {mode: ISTIO_MUTUAL}}"}}, want: snapshot.HandConnection{Settings: true, TLS: snapshot.ClientMesh, Mode: "TLS mode ISTIO_MUTUAL", Place: snapshot.HandBeside}},
		"of the root":    {rules: []rule{{"istio-system", "a", "host: '*.local', trafficPolicy: {tls: {mode: DISABLE}}"}}, want: snapshot.HandConnection{Settings: true, TLS: snapshot.ClientPlain, Mode: "TLS mode DISABLE", Place: snapshot.HandBehind}},
		"not exported":   {rules: []rule{{"shop", "a", "host: cart, exportTo: ['.'], trafficPolicy: {tls: {mode: DISABLE}}"}}},
		"of other pods":  {rules: []rule{{"front", "a", "host: " + host + ", workloadSelector: {matchLabels: {app: other}}, trafficPolicy: {tls: {mode: DISABLE}}"}}},
		"of these pods":  {rules: []rule{{"front", "a", "host: " + host + ", workloadSelector: {matchLabels: {app: web}}, trafficPolicy: {tls: {mode: DISABLE}}"}}, want: snapshot.HandConnection{Settings: true, TLS: snapshot.ClientPlain, Mode: "TLS mode DISABLE", Place: snapshot.HandInstead}},
		"exact first":    {rules: []rule{{"shop", "a", "host: '*.shop.svc.cluster.local', trafficPolicy: {tls: {mode: SIMPLE}}"}, {"shop", "b", "host: cart"}}, want: snapshot.HandConnection{Place: snapshot.HandBeside}},
		"the oldest":     {rules: []rule{{"shop", "b", "host: cart, trafficPolicy: {tls: {mode: DISABLE}}"}, {"shop", "a", "host: cart, trafficPolicy: {tls: {mode: SIMPLE}}"}}, want: snapshot.HandConnection{Settings: true, TLS: snapshot.ClientPlain, Mode: "TLS mode DISABLE", Place: snapshot.HandBeside}},
		"oldest policy":  {rules: []rule{{"shop", "b", "host: cart"}, {"shop", "a", "host: cart, trafficPolicy: {tls: {mode: MUTUAL}}"}}, want: snapshot.HandConnection{Settings: true, TLS: snapshot.ClientOther, Mode: "TLS mode MUTUAL", Place: snapshot.HandBeside}},
		"a port":         {rules: []rule{{"shop", "a", "host: cart, trafficPolicy: {tls: {mode: SIMPLE}, portLevelSettings: [{port: {number: 9080}, tls: {mode: DISABLE}}]}"}}, want: snapshot.HandConnection{Settings: true, TLS: snapshot.ClientPlain, Mode: "TLS mode DISABLE", Place: snapshot.HandBeside}},
		"another port":   {rules: []rule{{"shop", "a", "host: cart, trafficPolicy: {portLevelSettings: [{port: {number: 80}, tls: {mode: DISABLE}}]}"}}, want: snapshot.HandConnection{Settings: true, Place: snapshot.HandBeside}},
		"a port without one of its own": {
			rules: []rule{{"shop", "a", "host: cart, trafficPolicy: {tls: {mode: DISABLE}, portLevelSettings: [{port: {number: 9080}, outlierDetection: {}}]}"}},
			want:  snapshot.HandConnection{Settings: true, TLS: snapshot.ClientPlain, Mode: "TLS mode DISABLE, but none for this port", Place: snapshot.HandBeside},
		},
		"a subset": {
			rules: []rule{{"shop", "a", "host: cart, trafficPolicy: {tls: {mode: SIMPLE}}, subsets: [{name: v1, trafficPolicy: {tls: {mode: DISABLE}}}]"}}, subset: "v1",
			want: snapshot.HandConnection{Settings: true, TLS: snapshot.ClientPlain, Mode: "TLS mode DISABLE", Place: snapshot.HandBeside},
		},
		"a subset inherits": {
			rules: []rule{{"shop", "a", "host: cart, trafficPolicy: {tls: {mode: DISABLE}}, subsets: [{name: v1, trafficPolicy: {outlierDetection: {}}}]"}}, subset: "v1",
			want: snapshot.HandConnection{Settings: true, TLS: snapshot.ClientPlain, Mode: "TLS mode DISABLE", Place: snapshot.HandBeside},
		},
		"not the subset": {
			rules: []rule{{"shop", "a", "host: cart, subsets: [{name: v1, trafficPolicy: {tls: {mode: DISABLE}}}]"}}, subset: "v2", want: snapshot.HandConnection{Place: snapshot.HandBeside},
		},
		"an SNI of its own": {
			rules: []rule{{"shop", "a", "host: cart, trafficPolicy: {tls: {mode: ISTIO_MUTUAL, sni: x.example}}"}},
			want:  snapshot.HandConnection{Settings: true, TLS: snapshot.ClientOther, Mode: "TLS mode ISTIO_MUTUAL with an SNI of its own", Place: snapshot.HandBeside},
		},
	} {
		c := &snapshot.Cluster{Name: "east"}
		for i, r := range tt.rules {
			o := written[istionetworkingv1.DestinationRule](t, r.namespace, r.name, r.spec)
			o.CreationTimestamp = metav1.NewTime(time.Unix(int64(i), 0))
			reads[snapshot.DestinationRule](o)
			c.OfMeshes[snapshot.DestinationRule] = append(c.OfMeshes[snapshot.DestinationRule], o)
		}
		mesh := &snapshot.MeshPlan{RootNamespace: "istio-system", Namespace: "istio-system"}
		got, found := inspect(c, snapshot.Plane{}).ConnectionFor(&snapshot.HostQuery{Host: host, Mesh: mesh, Home: "shop", Port: 9080},
			&snapshot.PodQuery{Mesh: mesh, Namespace: "front", Pods: []map[string]string{{"app": "web"}}}, tt.subset)
		assert.Equal(t, tt.want != snapshot.HandConnection{}, found, name)
		got.Ref = snapshot.Ref{}
		assert.Equal(t, tt.want, got, name)
	}
}
