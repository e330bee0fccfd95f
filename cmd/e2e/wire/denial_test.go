package wire

import (
	"errors"
	"fmt"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/meshctl/meshctl/demo/app"
	"github.com/meshctl/meshctl/demo/waittest"
)

// denying denies the reviews of the second cluster certain requests to the ratings of both, which another policy
// allows them. %s stands for the requests.
const denying = `apiVersion: networking.mesh.gloo.solo.io/v1
kind: AccessPolicy
metadata: {name: denied, namespace: gloo-mesh}
spec:
  action: DENY
  sourceSelector:
  - kubeServiceAccountRefs:
      serviceAccounts: [{name: bookinfo-reviews, namespace: bookinfo, clusterName: cluster-2}]
  destinationSelector:
  - kubeServiceRefs:
      services:
      - {name: ratings, namespace: bookinfo, clusterName: cluster-1}
      - {name: ratings, namespace: bookinfo, clusterName: cluster-2}
%s`

// denials: a denial wins over what allows, here and across clusters, for the requests and the callers that it names,
// also on connections that were open before it; what it refuses is counted, and its end lets callers in again.
func denials(t *testing.T, e *environment) {
	t.Helper()
	s := e.seen(t)
	reviews, page := e.pod(t, "cluster-2", "reviews-v1"), e.pod(t, "cluster-1", "productpage-v1")
	ratings := []service{{"cluster-1", "ratings"}, {"cluster-2", "ratings"}}
	// answers checks what each of the two gets for some requests; "all" stands for every request of reviews.
	answers := func(denied ...string) error {
		var all []error
		for _, to := range ratings {
			for _, request := range []string{"GET /closed/1", "POST /closed/1", "GET /open/1"} {
				want := 200
				for _, d := range denied {
					if d == request || d == "all" {
						want = 403
					}
				}
				method, path, _ := strings.Cut(request, " ")
				call := app.Call{URL: path, Method: method}
				all = append(all,
					target{e, reviews, "http://" + to.host(reviews.Cluster)}.want(t.Context(), want, call),
					target{e, page, "http://" + to.host(page.Cluster)}.want(t.Context(), 200, call))
			}
		}
		return errors.Join(all...)
	}

	e.during(t, fmt.Sprintf(denying, "  allowedPaths: [/closed/*]\n  allowedMethods: [GET]\n"))
	waittest.NoError(t, "one method below one path is denied", func() error { return answers("GET /closed/1") })

	open := e.stream(t, reviews, app.Call{URL: "http://" + ratings[0].host(reviews.Cluster), Rate: 50, Parallel: 5})
	waittest.Until(t, "requests are answered on connections that stay open", func() bool { return open.counts().total() > 100 })
	require.Empty(t, open.counts().failed())
	e.apply(t, fmt.Sprintf(denying, ""))
	waittest.NoError(t, "all requests are denied", func() error { return answers("all") })
	e.drained(t)
	var answered atomic.Int64
	open.watch(func(name string) {
		if strings.HasPrefix(name, "cluster-") {
			answered.Add(1)
		}
	})
	open.seen(t, "403 RBAC: access denied")
	assert.Zero(t, answered.Load(), "answers on connections that were open before the denial")
	open.stop()

	s.settled(t)
	const sent = 40
	denied, refused := s.denied(t, "ratings"), s.refused(t, "reviews", "ratings")
	all, err := e.send(t.Context(), reviews, app.Call{URL: "http://" + ratings[0].host(reviews.Cluster), Count: sent})
	require.NoError(t, err)
	require.Equal(t, sent, countOf(all, "403"), "%v", all)
	waittest.NoError(t, "what is denied is counted, by who denies it and by who is denied", func() error {
		if by, of := s.denied(t, "ratings")-denied, s.refused(t, "reviews", "ratings")-refused; by != sent || of != sent {
			return fmt.Errorf("%d and %d are counted, want %d", by, of, sent)
		}
		return nil
	})

	e.remove(t, fmt.Sprintf(denying, ""))
	waittest.NoError(t, "nothing is denied any more", func() error { return answers() })
}
