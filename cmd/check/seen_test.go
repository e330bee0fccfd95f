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

// TestTraffic: services that fail and shifts off their weights are warnings, and what was not counted is said.
func TestTraffic(t *testing.T) {
	t.Parallel()
	input, _, err := offline.Load(offline.Dir("../../testdata/translate/bookinfo/in"))
	require.NoError(t, err)
	state, now := engine.Translate(input), time.Date(2026, 7, 1, 12, 0, 0, 0, time.UTC)
	report := func(sent []enginetest.Sent, unread ...string) *explain.Evidence {
		return &explain.Evidence{Report: enginetest.Report(state, now, sent, unread...)}
	}
	fails := func(good, bad uint64) []enginetest.Sent {
		return []enginetest.Sent{{From: "reviews-v2-bookinfo-cluster-1-deployment", To: "ratings-bookinfo-cluster-1", Counts: map[snapshot.Measure]uint64{snapshot.Answered2xx: good, snapshot.Unanswered: bad}}}
	}
	for name, tt := range map[string]struct {
		evidence *explain.Evidence
		want     string
	}{
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
		"too few": {report(fails(0, 99)), `
Traffic
  ok       requests succeed, and shifts have their weights: 99 requests in the last 15m; 11 of 11 proxies were read
`},
		"failing": {report(fails(94, 6)), `
Traffic
  warning  Destination gloo-mesh/ratings-bookinfo-cluster-1: 6 of 100 requests failed in the last 15m (6%), most of those of cluster-1/reviews-v2: 6 of 100
           → see which, and how: meshctl top edges --to ratings.bookinfo.cluster-1; why one goes where it does: meshctl why
`},
		"a shift": {report(enginetest.Bookinfo()[:3]), `
Traffic
  warning  TrafficPolicy gloo-mesh/reviews-shift on reviews-bookinfo-cluster-1: of 10,000 requests from mesh istiod-istio-system-cluster-1 in the last 15m, 70% went to reviews-bookinfo-cluster-1, version-v1, and 75% is asked
           → see what routes them: meshctl describe destination reviews-bookinfo-cluster-1; what the proxies hold: meshctl why FROM TO --proxy
`},
	} {
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
