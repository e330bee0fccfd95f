package check

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/meshctl/meshctl/cmd/cmdutil"
	"github.com/meshctl/meshctl/engine"
	"github.com/meshctl/meshctl/engine/enginetest"
	"github.com/meshctl/meshctl/engine/explain"
	"github.com/meshctl/meshctl/engine/offline"
	"github.com/meshctl/meshctl/engine/snapshot"
)

const reviewsV2, productpageV1 = "reviews-v2-bookinfo-cluster-1-deployment", "productpage-v1-bookinfo-cluster-1-deployment"

// fails are requests to ratings, of which some get no answer.
func fails(good, bad uint64) []enginetest.Sent {
	return []enginetest.Sent{{From: reviewsV2, To: "ratings-bookinfo-cluster-1", Counts: map[snapshot.Measure]uint64{snapshot.Answered2xx: good, snapshot.Unanswered: bad}}}
}

// trafficCase is what proxies counted, and what check says of it.
type trafficCase struct {
	evidence *explain.Evidence
	want     string
}

// traffic checks cases with the numbers that report makes of what was sent.
func traffic(t *testing.T, cases func(report func(sent []enginetest.Sent, unread ...string) *explain.Evidence) map[string]trafficCase) {
	t.Helper()
	input, _, err := offline.Load(offline.Dir("../../testdata/translate/bookinfo/in"))
	require.NoError(t, err)
	state, now := engine.Translate(input), time.Date(2026, 7, 1, 12, 0, 0, 0, time.UTC)
	report := func(sent []enginetest.Sent, unread ...string) *explain.Evidence {
		return &explain.Evidence{Report: enginetest.Report(state, now, sent, unread...)}
	}
	for name, tt := range cases(report) {
		checkup := explain.WithEvidence(explain.New(state), tt.evidence).Checkup(&explain.CheckFacts{Now: now, Offline: true})
		only := explain.NewCheckupOf()
		for _, c := range checkup.Categories {
			if c.Title == "Traffic" {
				only = explain.NewCheckupOf(c)
			}
		}
		streams, _, out, _ := cmdutil.TestStreams()
		o := &Options{Streams: streams}
		require.NoError(t, o.paint(out, only))
		text := out.String()
		if tt.want == "" {
			assert.Empty(t, only.Categories, name)
			continue
		}
		assert.Equal(t, tt.want[1:]+"\n"+only.Summary()+"\n", text, name)
	}
}

// TestTraffic: services of which requests fail, and shifts off their weights, are warnings, and what was not counted is said.
func TestTraffic(t *testing.T) {
	t.Parallel()
	traffic(t, func(report func([]enginetest.Sent, ...string) *explain.Evidence) map[string]trafficCase {
		return map[string]trafficCase{
			"nobody counts": {nil, ""},
			"no answer": {&explain.Evidence{Unknown: "Lease gloo-mesh/meshctl: there is none"}, `
Traffic
  info     what requests do is counted: not known: Lease gloo-mesh/meshctl: there is none
           → see: meshctl top --help
`},
			"nothing read": {report(nil, "cluster-1", "cluster-2"), `
Traffic
  info     what requests do is counted: 0 of 11 proxies were read
           → see why: meshctl top workloads
`},
			"well": {report(fails(95, 5)), `
Traffic
  ok       requests succeed, and shifts have their weights: 100 requests in the last 15m; 11 of 11 proxies were read
`},
			"too few": {report(fails(0, 19)), `
Traffic
  ok       requests succeed, and shifts have their weights: 19 requests in the last 15m; 11 of 11 proxies were read
`},
			"failing": {report(fails(94, 6)), `
Traffic
  warning  Destination gloo-mesh/ratings-bookinfo-cluster-1: 6 of 100 requests failed in the last 15m (6%), all of cluster-1/reviews-v2
           → see which, and how: meshctl top edges --to ratings.bookinfo.cluster-1; why one goes where it does: meshctl why
`},
			"a shift": {report(enginetest.Bookinfo()[:3]), `
Traffic
  warning  TrafficPolicy gloo-mesh/reviews-shift on reviews-bookinfo-cluster-1: of 10,000 requests from mesh istiod-istio-system-cluster-1 in the last 15m, 70% went to reviews-bookinfo-cluster-1, version-v1, and 75% is asked
           → see what routes them: meshctl describe destination reviews-bookinfo-cluster-1; what the proxies hold: meshctl why FROM TO --proxy
`},
		}
	})
}

// TestTrafficThatFails: from a third on, it is a failure: lately, of all callers or of one, and not by chance.
func TestTrafficThatFails(t *testing.T) {
	t.Parallel()
	late := func(sent []enginetest.Sent) []enginetest.Sent {
		sent[0].Late = true
		return sent
	}
	calls := func(from string, good uint64) []enginetest.Sent {
		return []enginetest.Sent{{From: from + "-bookinfo-cluster-1-deployment", To: "ratings-bookinfo-cluster-1", Counts: map[snapshot.Measure]uint64{snapshot.Answered2xx: good}}}
	}
	to := func(destination, subset string, m snapshot.Measure, n uint64) enginetest.Sent {
		return enginetest.Sent{From: productpageV1, To: destination, Subset: subset, Counts: map[snapshot.Measure]uint64{m: n}}
	}
	shifted := []enginetest.Sent{
		to("reviews-bookinfo-cluster-1", "version-v1", snapshot.Answered2xx, 7500), to("reviews-bookinfo-cluster-1", "version-v2", snapshot.Answered2xx, 1500),
		to("reviews-bookinfo-cluster-2", "version-v3", snapshot.Answered5xx, 1000),
	}
	traffic(t, func(report func([]enginetest.Sent, ...string) *explain.Evidence) map[string]trafficCase {
		return map[string]trafficCase{
			"perhaps by chance": {report(fails(13, 7)), `
Traffic
  ok       requests succeed, and shifts have their weights: 20 requests in the last 15m; 11 of 11 proxies were read
`},
			"less than a third": {report(fails(680, 320)), `
Traffic
  warning  Destination gloo-mesh/ratings-bookinfo-cluster-1: 320 of 1,000 requests failed in the last 15m (32%), all of cluster-1/reviews-v2
           → see which, and how: meshctl top edges --to ratings.bookinfo.cluster-1; why one goes where it does: meshctl why
`},
			"a third": {report(fails(600, 300)), `
Traffic
  failure  Destination gloo-mesh/ratings-bookinfo-cluster-1: 33.3% of the requests to ratings.bookinfo.cluster-1 fail: 60 of 180 in the last 3m, all of cluster-1/reviews-v2
           → see which, and how: meshctl top edges --to ratings.bookinfo.cluster-1; why one goes where it does: meshctl why
`},
			"all of few": {report(fails(0, 30)), `
Traffic
  failure  Destination gloo-mesh/ratings-bookinfo-cluster-1: 100% of the requests to ratings.bookinfo.cluster-1 fail: 22 of 22 in the last 13m, all of cluster-1/reviews-v2
           → see which, and how: meshctl top edges --to ratings.bookinfo.cluster-1; why one goes where it does: meshctl why
`},
			"well again": {report(append(fails(0, 300), late(fails(600, 0))...)), `
Traffic
  warning  Destination gloo-mesh/ratings-bookinfo-cluster-1: 300 of 900 requests failed in the last 15m (33.3%), all of cluster-1/reviews-v2
           → see which, and how: meshctl top edges --to ratings.bookinfo.cluster-1; why one goes where it does: meshctl why
`},
			"since two minutes": {report(append(fails(6000, 0), late(fails(0, 800))...)), `
Traffic
  failure  Destination gloo-mesh/ratings-bookinfo-cluster-1: 40% of the requests to ratings.bookinfo.cluster-1 fail: 800 of 2,000 in the last 3m, all of cluster-1/reviews-v2
           → see which, and how: meshctl top edges --to ratings.bookinfo.cluster-1; why one goes where it does: meshctl why
`},
			"one caller of many": {report(append(fails(0, 150), calls("details-v1", 9000)...)), `
Traffic
  failure  Destination gloo-mesh/ratings-bookinfo-cluster-1: 100% of the requests of cluster-1/reviews-v2 to ratings.bookinfo.cluster-1 fail: 24 of 24 in the last 3m
           → see which, and how: meshctl top edges --to ratings.bookinfo.cluster-1; why one goes where it does: meshctl why
`},
			"a target of a shift": {report(shifted), `
Traffic
  failure  Destination gloo-mesh/reviews-bookinfo-cluster-2: 100% of the requests to reviews.bookinfo.cluster-2 fail: 192 of 192 in the last 3m, all of cluster-1/productpage-v1 to version-v3; TrafficPolicy gloo-mesh/reviews-shift sends 10% of the requests to reviews.bookinfo.cluster-1 there
           → see which, and how: meshctl top edges --to reviews.bookinfo.cluster-2; why one goes where it does: meshctl why
`},
		}
	})
}
