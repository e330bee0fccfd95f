package enginetest

import (
	"time"

	"github.com/meshctl/meshctl/engine/snapshot"
	"github.com/meshctl/meshctl/engine/traffic"
)

// Sent are requests in the last 15 minutes, evenly spread.
type Sent struct {
	// From is the name of a Workload; empty if the requests are those that To, a Workload, gets. To is otherwise the name of a Destination or
	// VirtualDestination.
	From, To string
	Subset   string
	// Counts are by measure.
	Counts map[snapshot.Measure]uint64
	// Late: all came in the last two minutes. Early: all came before these.
	Late, Early bool
}

// Report is what a meshctl serve would answer that has read all proxies of a State, but for those of some clusters, where nobody may.
func Report(state *snapshot.State, now time.Time, sent []Sent, unread ...string) *traffic.Report {
	const points = int64(traffic.Kept / traffic.Point)
	refs := map[string]snapshot.Ref{}
	for _, w := range state.Plan.Workloads {
		refs[w.Name] = snapshot.RefOf(snapshot.Workload, w)
	}
	for d := range state.Plan.Destinations.All() {
		refs[d.Ref.Name] = d.Ref
	}
	for _, v := range state.Plan.VirtualDestinations {
		refs[v.Ref.Name] = v.Ref
	}
	ring := traffic.NewRing(now.Add(-time.Hour), traffic.MaxEdges)
	for at := range points {
		for _, s := range sent {
			key := traffic.Key{From: refs[s.From], To: refs[s.To], Subset: s.Subset}
			if s.From != "" {
				key.Port = 80
			}
			first, end, spread := int64(0), points, uint64(points)
			switch {
			case s.Late:
				first, spread = points-8, 8
			case s.Early:
				end, spread = points-8, uint64(points-8)
			}
			if at < first || at >= end {
				continue
			}
			came := traffic.Values{}
			for m, n := range s.Counts {
				came[m] = n / spread
				if uint64(at-first) < n%spread {
					came[m]++
				}
			}
			if came != (traffic.Values{}) {
				ring.Add(now.Add(time.Duration(at-points+1)*traffic.Point), key, &came)
			}
		}
	}
	survey, status := traffic.Look(state), map[traffic.Proxy]traffic.Status{}
	for i := range survey.Pods {
		proxy := survey.Pods[i].Proxy
		status[proxy] = traffic.Status{Read: now}
		for _, cluster := range unread {
			if proxy.Cluster == cluster {
				status[proxy] = traffic.Status{Reason: traffic.NotAllowed, Detail: "its account is system:serviceaccount:gloo-mesh:" + cluster}
			}
		}
	}
	return ring.Report(now, &traffic.Context{State: state, Survey: survey, Status: status, Fresh: now.Add(-time.Minute)}, traffic.Query{By: traffic.ByAll, Window: traffic.Kept})
}

// Bookinfo is what the workloads of the case bookinfo sent: reviews-shift asks for 75, 15 and 10 percent, and gets 70, 20 and 10; one caller of
// ratings is refused, and ratings in cluster-2 fails.
func Bookinfo() []Sent {
	const page, reviews1, ratings1, ratings2 = "productpage-v1-bookinfo-cluster-1-deployment", "reviews-bookinfo-cluster-1", "ratings-bookinfo-cluster-1", "ratings-bookinfo-cluster-2"
	ok := func(n uint64) map[snapshot.Measure]uint64 {
		return map[snapshot.Measure]uint64{snapshot.Answered2xx: n}
	}
	return []Sent{
		{From: page, To: reviews1, Subset: "version-v1", Counts: map[snapshot.Measure]uint64{snapshot.Answered2xx: 6970, snapshot.Answered5xx: 30, snapshot.TimedOut: 30, snapshot.Retried: 44}},
		{From: page, To: reviews1, Subset: "version-v2", Counts: ok(2000)},
		{From: page, To: "reviews-bookinfo-cluster-2", Subset: "version-v3", Counts: ok(1000)},
		{From: page, To: "details-bookinfo-cluster-1", Counts: ok(4000)},
		{From: "details-v1-bookinfo-cluster-1-deployment", To: ratings1, Counts: map[snapshot.Measure]uint64{snapshot.Answered4xx: 1400, snapshot.Forbidden: 1400}},
		{From: "reviews-v2-bookinfo-cluster-1-deployment", To: ratings1, Counts: ok(2000)},
		{From: "reviews-v3-bookinfo-cluster-2-deployment", To: ratings2, Counts: map[snapshot.Measure]uint64{snapshot.Answered2xx: 800, snapshot.Answered5xx: 150, snapshot.Unanswered: 50, snapshot.NotConnected: 50}},
		{To: "ratings-v1-bookinfo-cluster-1-deployment", Counts: map[snapshot.Measure]uint64{snapshot.Answered2xx: 2000, snapshot.LetIn: 2000, snapshot.Refused: 1400}},
		{To: "reviews-v1-bookinfo-cluster-1-deployment", Counts: map[snapshot.Measure]uint64{snapshot.Answered2xx: 7000, snapshot.LetIn: 7000}},
	}
}
