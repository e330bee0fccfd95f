package explain

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/meshctl/meshctl/engine"
	"github.com/meshctl/meshctl/engine/enginetest"
	"github.com/meshctl/meshctl/engine/offline"
	"github.com/meshctl/meshctl/engine/snapshot"
	"github.com/meshctl/meshctl/engine/traffic"
)

var seenAt = time.Date(2026, 7, 1, 12, 0, 0, 0, time.UTC)

// translatedCase is a case of testdata/translate.
func translatedCase(t testing.TB, name string) *snapshot.State {
	t.Helper()
	input, _, err := offline.Load(offline.Dir("../../testdata/translate/" + name + "/in"))
	require.NoError(t, err)
	return engine.Translate(input)
}

// seeing is the case bookinfo with what was sent there.
func seeing(t testing.TB, sent []enginetest.Sent, unread ...string) *Index {
	t.Helper()
	state := translatedCase(t, "bookinfo")
	return WithEvidence(New(state), &Evidence{Report: enginetest.Report(state, seenAt, sent, unread...)})
}

// TestChance compares the exact test with sums of the distribution, and with what is known of large counts.
func TestChance(t *testing.T) {
	t.Parallel()
	for _, n := range []uint64{1, 2, 7, 40} {
		for _, p := range []float64{0.01, 0.25, 0.5, 0.9} {
			pmf := make([]float64, n+1)
			for k := range pmf {
				choose := 1.0
				for i := range k {
					choose = choose * float64(int(n)-i) / float64(i+1)
				}
				pmf[k] = choose * math.Pow(p, float64(k)) * math.Pow(1-p, float64(n)-float64(k))
			}
			for k := range n + 1 {
				below, above := 0.0, 0.0
				for i, each := range pmf {
					if uint64(i) <= k {
						below += each
					}
					if uint64(i) >= k {
						above += each
					}
				}
				want := 2 * below
				if float64(k) > float64(n)*p {
					want = 2 * above
				}
				assert.InDelta(t, min(1, want), chance(k, n, p), 1e-9, "%d of %d, %v", k, n, p)
			}
		}
	}
	assert.InEpsilon(t, unlikely, chance(500_000+2000, 1_000_000, 0.5), 0.01, "four standard deviations of the normal distribution")
	assert.Equal(t, []float64{1, 0, 1, 0, 0}, []float64{chance(0, 9, 0), chance(1, 9, 0), chance(9, 9, 1), chance(8, 9, 1), chance(1e9, 2e9, 0.75)})
}

// drawn are requests that proxies divide by weights that may not be those asked for.
func drawn(r *rand.Rand, requests uint64, late bool, weights ...float64) []enginetest.Sent {
	counts := make([]uint64, len(weights))
	for range requests {
		at := r.Float64() * 100
		for i, w := range weights {
			if at -= w; at < 0 {
				counts[i]++
				break
			}
		}
	}
	var out []enginetest.Sent
	for i, to := range [][2]string{{"reviews-bookinfo-cluster-1", "version-v1"}, {"reviews-bookinfo-cluster-1", "version-v2"}, {"reviews-bookinfo-cluster-2", "version-v3"}, {"reviews-bookinfo-cluster-1", "version-v9"}} {
		if i < len(counts) {
			out = append(out, enginetest.Sent{From: "productpage-v1-bookinfo-cluster-1-deployment", To: to[0], Subset: to[1], Late: late, Counts: map[snapshot.Measure]uint64{snapshot.Answered2xx: counts[i]}})
		}
	}
	return out
}

func shiftOf(t *testing.T, x *Index) *SeenShift {
	t.Helper()
	shifts := x.sight.shifts[snapshot.Ref{Kind: snapshot.TrafficPolicy, Namespace: "gloo-mesh", Name: "reviews-shift"}]
	require.Len(t, shifts, 2, "one for the callers of each mesh")
	return &shifts[0]
}

func judgements(s *SeenShift) (out []Judgement) {
	for _, target := range s.Targets {
		out = append(out, target.Judged)
	}
	return out
}

// TestShiftsByChance: shares as asked are never off, whatever the draw; others are as soon as there is enough to say so.
func TestShiftsByChance(t *testing.T) {
	t.Parallel()
	state := translatedCase(t, "bookinfo")
	off := 0
	for seed := range uint64(60) {
		r := rand.New(rand.NewPCG(seed, 7))
		n := []uint64{20, 150, 2000, 30_000}[seed%4]
		for i, weights := range [][]float64{{75, 15, 10}, {40, 50, 10}} {
			x := WithEvidence(New(state), &Evidence{Report: enginetest.Report(state, seenAt, drawn(r, n, false, weights...))})
			if shiftOf(t, x).off() != nil {
				off++
				require.Equal(t, 1, i, "seed %d, %d requests: %+v", seed, n, shiftOf(t, x).Targets)
			} else {
				require.True(t, i == 0 || n < 150, "seed %d, %d requests: %+v", seed, n, shiftOf(t, x).Targets)
			}
		}
	}
	assert.Equal(t, 45, off)
}

// TestShifts has the cases that are no matter of chance.
func TestShifts(t *testing.T) {
	t.Parallel()
	const page = "productpage-v1-bookinfo-cluster-1-deployment"
	r := rand.New(rand.NewPCG(1, 1))
	asked := drawn(r, 6000, false, 75, 15, 10)
	with := func(more ...enginetest.Sent) []enginetest.Sent { return append(more, asked...) }
	many := func(from, to, subset string) enginetest.Sent {
		return enginetest.Sent{From: from, To: to, Subset: subset, Counts: map[snapshot.Measure]uint64{snapshot.Answered2xx: 3000}}
	}
	for name, tt := range map[string]struct {
		sent   []enginetest.Sent
		unread []string
		want   []Judgement
		shared bool
	}{
		"as asked":                        {sent: asked, want: []Judgement{AsAsked, AsAsked, AsAsked}},
		"nothing":                         {want: []Judgement{Unused, Unused, Unused}},
		"nobody is read":                  {unread: []string{"cluster-1"}, want: []Judgement{NotCounted, NotCounted, NotCounted}},
		"few":                             {sent: drawn(r, 99, false, 0, 0, 100), want: []Judgement{TooFew, TooFew, TooFew}},
		"a target that gets none":         {sent: drawn(r, 6000, false, 90, 0, 10), want: []Judgement{OffWeights, OffWeights, AsAsked}},
		"a part that is no target":        {sent: drawn(r, 6000, false, 50, 10, 10, 30), want: []Judgement{OffWeights, OffWeights, AsAsked, OffWeights}},
		"for three minutes after an edit": {sent: append(drawn(r, 6000, false, 0, 100, 0), drawn(r, 6000, true, 75, 15, 10)...), want: []Judgement{OffWeights, OffWeights, OffWeights}},
		// Requests that no route of the policy takes, and callers that it does not select, are not of the shift.
		"calls of the whole service": {sent: with(many(page, "reviews-bookinfo-cluster-1", "")), want: []Judgement{AsAsked, AsAsked, AsAsked}},
		"callers of another service": {sent: with(many(page, "details-bookinfo-cluster-1", "")), want: []Judgement{AsAsked, AsAsked, AsAsked}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := shiftOf(t, seeing(t, tt.sent, tt.unread...))
			assert.Equal(t, tt.want, judgements(s), "%+v", s)
			assert.Equal(t, tt.shared, s.Shared > 0)
		})
	}
}

// TestShiftsAfterAnEdit: requests from before a policy is in force as it is say nothing of its weights.
func TestShiftsAfterAnEdit(t *testing.T) {
	t.Parallel()
	r := rand.New(rand.NewPCG(1, 1))
	before, after := drawn(r, 6000, false, 0, 100, 0), drawn(r, 6000, true, 75, 15, 10)
	for i := range before {
		before[i].Early = true
	}
	off, asAsked, tooFew := []Judgement{OffWeights, OffWeights, AsAsked}, []Judgement{AsAsked, AsAsked, AsAsked}, []Judgement{TooFew, TooFew, TooFew}
	for name, tt := range map[string]struct {
		ago    time.Duration
		want   []Judgement
		window string
	}{
		"not lately":            {0, off, "last 15m"},
		"just now":              {10 * time.Second, tooFew, "last 0s"},
		"a whole minute ago":    {time.Minute + traffic.Settles, asAsked, "last 1m"},
		"two and a half ago":    {2*time.Minute + 2*traffic.Settles, asAsked, "last 2m"},
		"before other requests": {10 * time.Minute, off, "last 9m"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			state := translatedCase(t, "bookinfo")
			report := enginetest.Report(state, seenAt, append(slices.Clone(before), after...))
			if tt.ago > 0 {
				policy := snapshot.Ref{Kind: snapshot.TrafficPolicy, Namespace: "gloo-mesh", Name: "reviews-shift"}
				report.Changed = []traffic.Changed{{On: policy, Since: seenAt.Add(-tt.ago)}}
			}
			s := shiftOf(t, WithEvidence(New(state), &Evidence{Report: report}))
			assert.Equal(t, tt.want, judgements(s), "%+v", s)
			assert.Equal(t, tt.window, s.Window)
		})
	}
}

// TestLateShares: what was sent before the last minutes judges nothing alone.
func TestLateShares(t *testing.T) {
	t.Parallel()
	minutes := func(early, late uint64) []uint64 {
		out := make([]uint64, 15)
		for i := range out {
			if out[i] = early; i >= 12 {
				out[i] = late
			}
		}
		return out
	}
	for name, tt := range map[string]struct {
		a, b []uint64
		want Judgement
	}{
		"always":                          {minutes(60, 60), minutes(40, 40), OffWeights},
		"before the last minutes":         {minutes(90, 50), minutes(10, 50), AsAsked},
		"in the last minutes only":        {minutes(50, 90), minutes(50, 10), OffWeights},
		"to the other side of late":       {minutes(90, 20), minutes(10, 80), AsAsked},
		"few of late, and as many before": {minutes(12, 6), minutes(8, 4), AsAsked},
	} {
		s := SeenShift{Targets: []SeenTarget{{Asked: 50}, {Asked: 50}}}
		for i, trend := range [][]uint64{tt.a, tt.b} {
			for _, n := range trend {
				s.Targets[i].Requests += n
			}
		}
		s.judge([][]uint64{tt.a, tt.b}, true)
		assert.Equal(t, []Judgement{tt.want, tt.want}, judgements(&s), "%s: %+v", name, s)
	}
}

// TestEvidenceChangesNoVerdict: with whatever numbers, all that is answered is what is answered without them, but for what was seen.
func TestEvidenceChangesNoVerdict(t *testing.T) {
	t.Parallel()
	state := translatedCase(t, "bookinfo")
	plain := New(state)
	for seed := range uint64(5) {
		r := rand.New(rand.NewPCG(seed, 3))
		var sent []enginetest.Sent
		for _, from := range plain.Refs(snapshot.Workload) {
			for _, to := range plain.Refs(snapshot.Destination) {
				counts := map[snapshot.Measure]uint64{}
				for range r.IntN(3) {
					counts[[]snapshot.Measure{snapshot.Answered2xx, snapshot.Answered5xx, snapshot.Unanswered}[r.IntN(3)]] += r.Uint64N(2000)
				}
				if n := r.Uint64N(2000); r.IntN(2) == 0 {
					counts[snapshot.Answered4xx], counts[snapshot.Forbidden] = n, n
				}
				sent = append(sent, enginetest.Sent{From: from.Name, To: to.Name, Counts: counts})
			}
		}
		x := WithEvidence(plain, &Evidence{Report: enginetest.Report(state, seenAt, sent)})
		for _, from := range plain.Refs(snapshot.Workload) {
			for _, to := range plain.Refs(snapshot.Destination) {
				before, after := plain.Why(from, to, Request{}), x.Why(from, to, Request{})
				require.Nil(t, before.Seen)
				require.NotNil(t, after.Seen)
				after.Seen, after.Notes, after.Issues = nil, before.Notes, before.Issues
				require.Equal(t, before, after, "seed %d", seed)
			}
		}
		for _, ref := range plain.Refs(snapshot.AccessPolicy) {
			require.Equal(t, plain.stateOf(ref), x.stateOf(ref))
		}
		require.Len(t, plain.Issues(), len(New(state).Issues()), "the Index that it is made of stays as it is")
	}
}

// TestContradictions: evidence against an answer is a note.
func TestContradictions(t *testing.T) {
	t.Parallel()
	ref := func(kind snapshot.Kind, name string) snapshot.Ref {
		return snapshot.Ref{Kind: kind, Namespace: "gloo-mesh", Name: name}
	}
	page, details := ref(snapshot.Workload, "productpage-v1-bookinfo-cluster-1-deployment"), ref(snapshot.Workload, "details-v1-bookinfo-cluster-1-deployment")
	toDetails, toRatings := ref(snapshot.Destination, "details-bookinfo-cluster-1"), ref(snapshot.Destination, "ratings-bookinfo-cluster-1")
	all := func(n uint64, m ...snapshot.Measure) map[snapshot.Measure]uint64 {
		out := map[snapshot.Measure]uint64{}
		for _, each := range m {
			out[each] = n
		}
		return out
	}
	for name, tt := range map[string]struct {
		from, to snapshot.Ref
		counts   map[snapshot.Measure]uint64
		seen     string
		note     string
	}{
		"allowed, and all refused": {page, toDetails, all(1400, snapshot.Answered4xx, snapshot.Forbidden), "in the last 15m: 1,400 requests, 1,400 refused", "something refuses them that is not modelled"},
		"allowed, and all fail":    {page, toDetails, all(40, snapshot.Unanswered), "in the last 15m: 40 requests, 40 failed", "they are let in, and fail"},
		"allowed, as it should be": {page, toDetails, all(40, snapshot.Answered2xx), "in the last 15m: 40 requests", ""},
		"allowed, and too few":     {page, toDetails, all(9, snapshot.Unanswered), "in the last 15m: 9 requests, 9 failed", ""},
		"refused, and none is":     {details, toRatings, all(1400, snapshot.Answered2xx), "in the last 15m: 1,400 requests", "was refused: others than this one were sent"},
		"refused, as it should be": {details, toRatings, all(1400, snapshot.Answered4xx, snapshot.Forbidden), "in the last 15m: 1,400 requests, 1,400 refused", ""},
		"nothing":                  {page, toDetails, nil, "in the last 15m: no request", ""},
	} {
		x := seeing(t, []enginetest.Sent{{From: tt.from.Name, To: tt.to.Name, Counts: tt.counts}})
		why := x.Why(tt.from, tt.to, Request{})
		assert.Equal(t, tt.seen, why.seenText(), name)
		notes := fmt.Sprint(why.Notes)
		if tt.note == "" {
			assert.NotContains(t, notes, "last 15m", name)
		} else {
			assert.Contains(t, notes, tt.note, name)
		}
	}
	failing := func(good, bad uint64) string {
		sent := enginetest.Sent{From: page.Name, To: toDetails.Name, Counts: map[snapshot.Measure]uint64{snapshot.Answered2xx: good, snapshot.Answered5xx: bad}}
		return seeing(t, []enginetest.Sent{sent}).Why(page, toDetails, Request{}).answerText()
	}
	assert.Equal(t, []string{"ALLOWED", "ALLOWED", "ALLOWED, but 75% of its requests there fail: 180 of 240 in the last 3m", "ALLOWED, but 100% of its requests there fail: 22 of 22 in the last 13m"},
		[]string{failing(1200, 0), failing(900, 300), failing(300, 900), failing(0, 30)})
	unread := seeing(t, nil, "cluster-1").Why(page, toDetails, Request{})
	assert.Contains(t, unread.seenText(), "no data: meshctl serve may not create pods/portforward")
	assert.Equal(t, traffic.NoData, unread.Seen.State)
	assert.Empty(t, New(translatedCase(t, "bookinfo")).Why(page, toDetails, Request{}).seenText())
}

// TestFailedOver: where the requests of a VirtualDestination went follows from what the pods behind it got.
func TestFailedOver(t *testing.T) {
	t.Parallel()
	state := translatedCase(t, "failover-localized")
	const caller, self = "cart-v1-shop-cluster-1-statefulset", "cart"
	ref := snapshot.Ref{Kind: snapshot.VirtualDestination, Namespace: "gloo-mesh", Name: self}
	ok := func(from, to string, n uint64) enginetest.Sent {
		return enginetest.Sent{From: from, To: to, Counts: map[snapshot.Measure]uint64{snapshot.Answered2xx: n}}
	}
	behind := map[string]string{} // the first workload of each cluster, as all pods behind it
	for _, w := range state.Plan.Workloads {
		if k := w.Spec.Kubernetes; behind[k.Controller.ClusterName] == "" && k.Controller.Name == "cart-v1" {
			behind[k.Controller.ClusterName] = w.Name
		}
	}
	require.Len(t, behind, 4)
	for name, tt := range map[string]struct {
		sent   []enginetest.Sent
		unread []string
		want   FailedOver
	}{
		"to the first":            {sent: []enginetest.Sent{ok(caller, self, 1000), ok("", behind["cluster-1"], 1000)}, want: OverNo},
		"all to the second":       {sent: []enginetest.Sent{ok(caller, self, 1000), ok("", behind["cluster-2"], 990)}, want: OverYes},
		"some to the second":      {sent: []enginetest.Sent{ok(caller, self, 1000), ok("", behind["cluster-1"], 500), ok("", behind["cluster-2"], 500)}, want: OverPartly},
		"others call the second":  {sent: []enginetest.Sent{ok(caller, self, 1000), ok("", behind["cluster-1"], 1000), ok("", behind["cluster-2"], 700), ok(caller, "cart-shop-cluster-2", 700)}, want: OverNo},
		"few":                     {sent: []enginetest.Sent{ok(caller, self, 99), ok("", behind["cluster-2"], 99)}, want: OverUnknown},
		"the second is not read":  {sent: []enginetest.Sent{ok(caller, self, 1000)}, unread: []string{"cluster-2"}, want: OverUnknown},
		"callers of two clusters": {sent: []enginetest.Sent{ok(caller, self, 1000), ok(behind["cluster-2"], self, 1000), ok("", behind["cluster-2"], 2000)}, want: OverUnknown},
	} {
		x := WithEvidence(New(state), &Evidence{Report: enginetest.Report(state, seenAt, tt.sent, tt.unread...)})
		seen := x.Describe(ref).(*VirtualDestination).Seen
		require.NotNil(t, seen.Failover, name)
		require.NotEmpty(t, seen.Failover.Views, name)
		assert.Equal(t, tt.want, seen.Failover.Views[0].FailedOver, "%s: %+v", name, seen.Failover.Backing)
		titles := []string{}
		for _, s := range x.Describe(ref).Page().Sections {
			titles = append(titles, s.Title)
		}
		assert.Equal(t, []string{"", "Seen (last 15m)", "Where its requests went", "Failed over"}, titles[:4], name)
	}
}
