package wire

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"golang.org/x/sync/errgroup"

	"github.com/meshctl/meshctl/demo/app"
	"github.com/meshctl/meshctl/demo/proxies"
	"github.com/meshctl/meshctl/demo/waittest"
)

// service is a service of the demo.
type service struct{ cluster, name string }

// host is the name by which callers of a cluster know the service.
func (s service) host(from string) string {
	if s.cluster == from {
		return s.name + ".bookinfo.svc.cluster.local:9080"
	}
	return s.name + ".bookinfo.svc." + s.cluster + ".global:9080"
}

func services() []service {
	return []service{
		{"cluster-1", "productpage"}, {"cluster-1", "details"}, {"cluster-1", "ratings"}, {"cluster-1", "reviews"},
		{"cluster-2", "ratings"}, {"cluster-2", "reviews"},
	}
}

// access calls every service from every workload: productpage may call all, reviews
// may call ratings, and nobody else anything.
func access(t *testing.T, e *environment) {
	t.Helper()
	pods, err := e.pods(t.Context())
	require.NoError(t, err)
	calls := 0
	var group errgroup.Group
	for _, from := range pods {
		if from.Gateway {
			continue
		}
		group.Go(func() error {
			for _, to := range services() {
				allowed := from.Workload == "productpage-v1" || strings.HasPrefix(from.Workload, "reviews-") && to.name == "ratings"
				if to.cluster == "cluster-1" && to.name == "reviews" {
					continue // its requests are shifted; shares looks at them
				}
				all, err := e.send(t.Context(), from, app.Call{URL: "http://" + to.host(from.Cluster), Count: 10, Parallel: 2})
				if err != nil {
					return err
				}
				answered, refused := all.total()-len(all.failed()), countOf(all, "403")
				if allowed && (refused > 0 || answered != 10) || !allowed && refused != 10 {
					return fmt.Errorf("%s in %s calls %v, allowed %t: %v", from.Workload, from.Cluster, to, allowed, all)
				}
			}
			return nil
		})
		calls += len(services()) - 1
	}
	require.NoError(t, group.Wait())
	t.Logf("%d pairs", calls)
	restricted(t, e)
}

// restricted allows callers in the namespace of details, of the first cluster, to call
// ratings of both clusters, with one method, below one path; then those in another namespace.
// Those of the second cluster are not let in: their trust domain tells them apart.
func restricted(t *testing.T, e *environment) {
	t.Helper()
	from := e.pod(t, "cluster-1", "details-v1")
	const policy = `apiVersion: networking.mesh.gloo.solo.io/v1
kind: AccessPolicy
metadata: {name: restricted, namespace: gloo-mesh}
spec:
  sourceSelector:
  - kubeIdentityMatcher: {namespaces: [bookinfo], clusters: [cluster-1]}
  destinationSelector:
  - kubeServiceRefs:
      services:
      - {name: ratings, namespace: bookinfo, clusterName: cluster-1}
      - {name: ratings, namespace: bookinfo, clusterName: cluster-2}
  allowedPaths: [/open/*]
  allowedMethods: [GET]
`
	e.during(t, policy)
	for _, to := range []service{{"cluster-1", "ratings"}, {"cluster-2", "ratings"}} {
		s := target{e, from, "http://" + to.host("cluster-1")}
		waittest.NoError(t, "restricted access", func() error {
			return errors.Join(
				s.want(t.Context(), 200, app.Call{URL: "/open/1", Method: "GET"}),
				s.want(t.Context(), 403, app.Call{URL: "/open/1", Method: "POST"}),
				s.want(t.Context(), 403, app.Call{URL: "/closed", Method: "GET"}),
			)
		})
	}
	for _, from := range []proxies.Pod{e.pod(t, "cluster-2", "ratings-v1"), e.pod(t, "cluster-2", "reviews-v1")} {
		for _, to := range []service{{"cluster-1", "ratings"}, {"cluster-2", "ratings"}} {
			status := 403
			if from.Workload == "reviews-v1" {
				status = 200 // by the policy for reviews
			}
			require.NoError(t, target{e, from, "http://" + to.host("cluster-2")}.want(t.Context(), status, app.Call{URL: "/open/1", Method: "GET"}))
		}
	}
	e.apply(t, strings.Replace(policy, "[bookinfo]", "[elsewhere]", 1))
	waittest.NoError(t, "callers in another namespace have access", func() error {
		return target{e, from, "http://ratings:9080"}.want(t.Context(), 403, app.Call{URL: "/open/1"})
	})
}
