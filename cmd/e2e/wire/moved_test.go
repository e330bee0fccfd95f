package wire

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/meshctl/meshctl/demo/kube"
	"github.com/meshctl/meshctl/demo/waittest"
	"github.com/meshctl/meshctl/engine/snapshot"
)

// moved edits which clusters are behind a VirtualDestination, under load: no request fails, and a gateway passes it on only as long as a
// service of its cluster is behind it.
func moved(t *testing.T, e *environment) {
	t.Helper()
	from := e.pod(t, "cluster-1", "productpage-v1")
	const url = "http://reviews.global:9080/reviews/1"
	first := func(cluster string) func() error {
		return func() error { return e.answeredIn(t.Context(), cluster, from, url) }
	}
	e.during(t, behind("cluster-2"))
	waittest.NoError(t, "it is answered behind the gateway", first("cluster-2"))
	l := e.under(t, from, url, 200)
	for range 2 {
		for _, clusters := range [][]string{{"cluster-1"}, {"cluster-2"}, {"cluster-1", "cluster-2"}, {"cluster-2", "cluster-1"}, {"cluster-1"}, {"cluster-2", "cluster-1"}, {"cluster-2"}} {
			e.apply(t, behind(clusters...))
			waittest.NoError(t, fmt.Sprintf("it is answered by the first of %s", clusters), first(clusters[0]))
			waittest.NoError(t, fmt.Sprintf("with %s behind it", clusters), func() error { return e.passes(t, slices.Contains(clusters, "cluster-2")) })
		}
	}
	assert.Greater(t, l.clean(t), 1000)
}

// behind is a VirtualDestination with reviews of clusters behind it, in this order.
func behind(clusters ...string) string {
	out := strings.Split(farReviews, "  static:")[0] + "  static:\n    destinations:\n"
	for _, c := range clusters {
		out += fmt.Sprintf("    - kubeService: {name: reviews, namespace: bookinfo, clusterName: %s}\n", c)
	}
	return out
}

// passes returns an error unless gateways of the second cluster pass VirtualDestinations on, or do not.
func (e *environment) passes(t *testing.T, want bool) error {
	t.Helper()
	client, err := e.clusters["cluster-2"].Client()
	require.NoError(t, err)
	gateways, err := client.List(context.WithoutCancel(t.Context()), kube.Networking("gateways"), "istio-system")
	if err != nil {
		return err
	}
	var hosts []string
	for i := range gateways {
		servers, _, err := unstructured.NestedSlice(gateways[i].Object, "spec", "servers")
		require.NoError(t, err)
		for _, server := range servers {
			passed, _, err := unstructured.NestedStringSlice(server.(map[string]any), "hosts")
			require.NoError(t, err)
			hosts = append(hosts, passed...)
		}
	}
	if got := slices.ContainsFunc(hosts, func(host string) bool { return strings.Contains(host, "."+snapshot.PassedAsMark+".") }); got != want {
		return fmt.Errorf("gateways of cluster-2 pass on %v; of a VirtualDestination: want %t", hosts, want)
	}
	return nil
}
