package wire

import (
	"errors"
	"fmt"
	"testing"

	"github.com/meshctl/meshctl/demo/app"
	"github.com/meshctl/meshctl/demo/waittest"
)

// dependencies limits what productpage can call, and lifts the limit again.
func dependencies(t *testing.T, e *environment) {
	t.Helper()
	from := e.pod(t, "cluster-1", "productpage-v1")
	only := func(limited bool) func() error {
		return func() error {
			// Requests for reviews are shifted to the other cluster, which the proxy
			// needs to know, too.
			shifted, err := e.send(t.Context(), from, app.Call{URL: reviews, Count: 20})
			if err == nil && (shifted[remoteV3] == 0 || len(shifted.failed()) > 0) {
				err = fmt.Errorf("reviews: %v", shifted)
			}
			err = errors.Join(err, e.allAre(t.Context(), from, app.Call{URL: "http://ratings.bookinfo.svc.cluster-2.global:9080", Count: 5}, "cluster-2 ratings-v1"))
			for url, outcome := range map[string]string{"http://details:9080": "cluster-1 details-v1", "http://ratings:9080": "cluster-1 ratings-v1"} {
				call := app.Call{URL: url, Count: 5}
				if limited {
					err = errors.Join(err, e.noneAnswered(t.Context(), from, call))
				} else {
					err = errors.Join(err, e.allAre(t.Context(), from, call, outcome))
				}
			}
			return err
		}
	}
	waittest.NoError(t, "productpage can call everything", only(false))
	const dependency = `apiVersion: networking.enterprise.mesh.gloo.solo.io/v1beta1
kind: ServiceDependency
metadata: {name: productpage, namespace: gloo-mesh}
spec:
  sourceSelectors:
  - kubeWorkloadMatcher: {labels: {app: productpage}, namespaces: [bookinfo]}
  destinationSelectors:
  - kubeServiceRefs:
      services:
      - {name: reviews, namespace: bookinfo, clusterName: cluster-1}
      - {name: ratings, namespace: bookinfo, clusterName: cluster-2}
`
	e.during(t, dependency)
	waittest.NoError(t, "productpage can call what it depends on", only(true))
	e.remove(t, dependency)
	waittest.NoError(t, "productpage can call everything again", only(false))
}
