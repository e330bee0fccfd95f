package wire

import (
	"errors"
	"fmt"
	"maps"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/meshctl/meshctl/demo/app"
	"github.com/meshctl/meshctl/demo/proxies"
	"github.com/meshctl/meshctl/demo/waittest"
	"github.com/meshctl/meshctl/engine/traffic"
)

// readSecurely has the proxy of a workload serve what it counts by mutual TLS, and to nobody else. The agent reads it there, once no policy is in
// the way, which it says.
func readSecurely(t *testing.T, e *environment) {
	t.Helper()
	s := e.seen(t)
	const port = `proxy.istio.io/config: '{"proxyMetadata": {"ENVOY_SECURE_METRICS_PORT": "15091", "METRICS_LOCALHOST_ACCESS_ONLY": "true"},` +
		`"proxyStatsMatcher": {"inclusionRegexps": ["cluster\\.(outbound|inbound).*;\\.(upstream_(rq|cx)_|ssl\\.).*", "http\\.secure_stats\\..*"]}}'`
	e.annotated(t, "reviews-v1", port)
	waittest.NoError(t, "the report says what is in the way", func() error {
		for _, row := range s.report(t, traffic.ByWorkload).Rows {
			if row.To.Cluster == "cluster-2" && row.To.Name == "reviews-v1" && row.Reason == traffic.Failed && strings.Contains(row.Detail, "at port 15091, by mutual TLS: EOF; AuthorizationPolicies") {
				return nil
			}
		}
		return errors.New(states(s.report(t, traffic.ByWorkload)))
	})

	reviews := e.annotated(t, "reviews-v1", port+`, traffic.sidecar.istio.io/excludeInboundPorts: "15091"`)
	waittest.NoError(t, "the new proxy is read by mutual TLS", func() error {
		const answered = "http.secure_stats.downstream_rq_2xx"
		stats, err := e.plane.Stats(t.Context(), reviews, regexp.QuoteMeta(answered))
		if err == nil && stats[answered] < 3 { // of one reading at least, which are two pages
			err = fmt.Errorf("%v: %s", stats, states(s.report(t, traffic.ByWorkload)))
		}
		return err
	})
	before := s.fromSecond(t)
	all, err := e.send(t.Context(), reviews, app.Call{URL: "http://ratings:9080", Count: 57})
	require.NoError(t, err)
	require.Empty(t, all.failed())
	want := map[string]uint64{"cluster-2/reviews-v1 cluster-2/ratings local 2xx": 57}
	waittest.NoError(t, "all requests are counted", func() error {
		if got := since(before, s.fromSecond(t)); !maps.Equal(want, got) {
			return fmt.Errorf("want %v, got %v", want, got)
		}
		return nil
	})
	s.settled(t)
	assert.Equal(t, want, since(before, s.fromSecond(t)))
	e.annotated(t, "reviews-v1", "")
}

// annotated is the pod of a workload of the second cluster once it has been replaced by one with these annotations, as YAML.
func (e *environment) annotated(t *testing.T, name, annotations string) proxies.Pod {
	t.Helper()
	before := e.pod(t, "cluster-2", name)
	api := e.second(t).AppsV1().Deployments("bookinfo")
	list, err := api.List(t.Context(), metav1.ListOptions{})
	require.NoError(t, err)
	changed := 0
	for i := range list.Items {
		if !strings.HasSuffix(list.Items[i].Name, name) {
			continue
		}
		changed++
		_, err := api.Patch(t.Context(), list.Items[i].Name, types.ApplyYAMLPatchType, fmt.Appendf(nil,
			"apiVersion: apps/v1\nkind: Deployment\nmetadata: {name: %s}\nspec: {template: {metadata: {annotations: {%s}}}}\n", list.Items[i].Name, annotations),
			metav1.PatchOptions{FieldManager: "annotated"})
		require.NoError(t, err)
	}
	require.Equal(t, 1, changed)
	return workload{environment: e, cluster: "cluster-2", name: name}.become(t, 1, before)[0]
}
