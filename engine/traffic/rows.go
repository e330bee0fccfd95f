package traffic

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"strings"
	"time"

	"github.com/meshctl/meshctl/engine/snapshot"
)

// By is a question.
type By string

// The questions.
const (
	ByDestination By = "destinations"
	ByWorkload    By = "workloads"
	ByEdge        By = "edges"
	// ByAll has the rows of all three, destinations first, then workloads and edges.
	ByAll By = "all"
)

// Sorts are the orders of rows; the first is the default: what fails most comes first.
var Sorts = []string{"worst", "rps", "success", "p50", "p95", "p99", "retries", "name"}

// Query says what a report is about. Empty fields take all.
type Query struct {
	By     By
	Window time.Duration
	// From and To are the names of callers and of what they call: of its Service or controller, or of its object.
	From, To string
	// Cluster and Namespace are of what is called, or of the workload.
	Cluster, Namespace string
	Sort               string
}

// Report answers a query at a time.
func (r *Ring) Report(now time.Time, c *Context, q Query) *Report {
	sums, from := r.Window(now, q.Window)
	out := &Report{At: now, Since: r.since, Seconds: max(now.Sub(from).Seconds(), 0), Folded: r.folded, Clusters: c.Clusters, Changed: c.Versions.After(from.Add(-Settles)), Rows: []Row{}}
	covered := c.coverage()
	for _, at := range covered {
		out.Proxies += at.proxies
		out.Read += at.read
	}
	t := &rows{Context: c, peers: NewPeers(c.State.Plan), covered: covered, sums: sums, seconds: out.Seconds, query: q, planned: map[snapshot.Ref]*snapshot.DestinationPlan{}}
	for d := range c.State.Plan.Destinations.All() {
		t.planned[d.Ref] = d
	}
	if q.Window >= time.Minute {
		t.trends = r.trends(now, q.Window)
	}
	switch q.By {
	case ByWorkload:
		out.Rows = sorted(t.workloads(), q.Sort)
	case ByEdge:
		out.Rows = sorted(t.edges(), q.Sort)
	case ByAll:
		out.Rows = slices.Concat(sorted(t.destinations(), q.Sort), sorted(t.workloads(), q.Sort), sorted(t.edges(), q.Sort))
	default:
		out.Rows = sorted(t.destinations(), q.Sort)
	}
	return out
}

// rows makes those of a report.
type rows struct {
	*Context
	peers   Peers
	covered map[snapshot.Ref]*coverage
	sums    map[Key]*Values
	// trends are those of edges; nil for a window of less than a minute.
	trends  map[Key]trend
	seconds float64
	query   Query
	planned map[snapshot.Ref]*snapshot.DestinationPlan
}

// wants reports whether a peer is asked for.
func (t *rows) wants(p Peer) bool {
	return (t.query.Cluster == "" || p.Cluster == t.query.Cluster) && (t.query.Namespace == "" || p.Namespace == t.query.Namespace)
}

// called reports whether a peer has a name, also as name.namespace and name.namespace.cluster.
func called(p Peer, name string) bool {
	return name == "" || name == p.Ref.Name && name != "" || name == p.Name || strings.HasPrefix(p.Name+"."+p.Namespace+"."+p.Cluster+".", name+".")
}

// edges are those of which something came.
func (t *rows) edges() []Row {
	out := make([]Row, 0, len(t.sums))
	for key, v := range t.sums {
		from, to := t.peers.Of(key.From), t.peers.Of(key.To)
		if key.Serves() || !t.wants(to) || !called(from, t.query.From) || !called(to, t.query.To) {
			continue
		}
		out = append(out, Row{
			From: &from, To: to, Port: key.Port, Subset: key.Subset, Via: t.via(key, from, to), State: HasNumbers, Doors: doors{key.Door}.list(),
			Trend: t.trends[key].requests, FailedTrend: t.trends[key].failures(), Numbers: numbersOf(v, t.seconds),
		})
	}
	return out
}

// via is how requests get from a workload to a destination.
func (t *rows) via(key Key, from, to Peer) string {
	d := t.planned[key.To]
	switch {
	case d == nil || from.Cluster == "":
		return ""
	case from.Cluster == to.Cluster:
		return "local"
	case d.Federation != nil && !d.Federation.Flat:
		return "gateway"
	}
	return "direct"
}

// destinations are all that are called, or could be.
func (t *rows) destinations() []Row {
	byTo, through, trends := map[snapshot.Ref]*Values{}, map[snapshot.Ref]doors{}, map[snapshot.Ref]trend{}
	for key, v := range t.sums {
		if from := t.peers.Of(key.From); key.Serves() || !called(from, t.query.From) {
			continue
		}
		if byTo[key.To] == nil {
			byTo[key.To] = &Values{}
		}
		byTo[key.To].Add(v)
		through[key.To] = append(through[key.To], key.Door)
		trends[key.To] = trends[key.To].plus(t.trends[key])
	}
	for d := range t.State.Plan.Destinations.All() {
		if byTo[d.Ref] == nil {
			byTo[d.Ref] = &Values{}
		}
	}
	for _, v := range t.State.Plan.VirtualDestinations {
		if byTo[v.Ref] == nil {
			byTo[v.Ref] = &Values{}
		}
	}
	var out []Row
	for ref, v := range byTo {
		to := t.peers.Of(ref)
		if !t.wants(to) || !called(to, t.query.To) {
			continue
		}
		row := Row{To: to, State: HasNumbers, Doors: through[ref].list(), Trend: trends[ref].requests, FailedTrend: trends[ref].failures(), Numbers: numbersOf(v, t.seconds)}
		if *v == (Values{}) {
			row.State, row.Reason, row.Detail = t.callersOf(ref)
		}
		out = append(out, row)
	}
	return out
}

// callersOf says whether nobody called something, or nobody who could was read.
func (t *rows) callersOf(ref snapshot.Ref) (state State, reason Reason, detail string) {
	clusters := t.seenFrom(ref)
	all, without := 0, 0
	for _, w := range t.State.Plan.Workloads {
		if k := w.Spec.Kubernetes; k == nil || !clusters[k.Controller.ClusterName] ||
			ref.Kind == snapshot.VirtualDestination && ref.Cluster != "" && k.Controller.Namespace != ref.Namespace {
			continue
		}
		at := t.covered[snapshot.RefOf(snapshot.Workload, w)]
		if at == nil || at.reason == NoPods {
			continue
		}
		all++
		if why, more := at.without(&at.calls); why != "" {
			without++
			if reason == "" || why < reason {
				reason, detail = why, more
			}
		}
	}
	switch {
	case without == 0:
		return NoTraffic, "", ""
	case without == all:
		return NoData, reason, detail
	}
	return NoTraffic, reason, fmt.Sprintf("of %s that may call it, %d have no data", snapshot.Count(all, "workload"), without)
}

// seenFrom are the clusters whose workloads can call something.
func (t *rows) seenFrom(ref snapshot.Ref) map[string]bool {
	out := map[string]bool{t.peers.Of(ref).Cluster: true}
	if d := t.planned[ref]; d != nil && d.Federation != nil {
		for _, m := range d.Federation.To {
			out[m.Cluster] = true
		}
	}
	for _, v := range t.State.Plan.VirtualDestinations {
		if v.Ref == ref {
			for _, view := range v.Views {
				out[view.Mesh.Cluster] = true
			}
		}
	}
	return out
}

// workloads are all, with the requests that they get.
func (t *rows) workloads() []Row {
	calls, gets, through, trends := map[snapshot.Ref]bool{}, map[snapshot.Ref]*Values{}, map[snapshot.Ref]doors{}, map[snapshot.Ref]trend{}
	for key, v := range t.sums {
		calls[key.From] = true
		through[key.From] = append(through[key.From], key.Door)
		if !key.Serves() {
			continue
		}
		if gets[key.To] == nil {
			gets[key.To] = &Values{}
		}
		gets[key.To].Add(v)
		through[key.To] = append(through[key.To], key.Door)
		trends[key.To] = trends[key.To].plus(t.trends[key])
	}
	var out []Row
	for _, w := range t.State.Plan.Workloads {
		ref := snapshot.RefOf(snapshot.Workload, w)
		to := workloadPeer(ref, w)
		if !t.wants(to) || !called(to, t.query.To) || !called(to, t.query.From) {
			continue
		}
		at, v := t.covered[ref], gets[ref]
		row := Row{To: to, State: HasNumbers, Doors: through[ref].list(), Trend: trends[ref].requests, FailedTrend: trends[ref].failures()}
		if v != nil {
			row.Numbers = numbersOf(v, t.seconds)
		}
		row.know(at, v != nil, calls[ref])
		out = append(out, row)
	}
	return out
}

// know says what is known of a workload, of which it may have been counted what it gets, and what it sends.
func (r *Row) know(at *coverage, gets, sends bool) {
	if at == nil {
		if !gets && !sends {
			r.State, r.Reason = NoData, NotYet
		}
		return
	}
	known := func(s *side, counted bool) Known {
		if counted {
			reason, detail := at.note(s)
			if reason == Unread { // the numbers show that nothing does
				reason, detail = "", ""
			}
			return Known{HasNumbers, reason, detail}
		}
		if reason, detail := at.without(s); reason != "" {
			return Known{NoData, reason, detail}
		}
		reason, detail := at.note(s)
		return Known{NoTraffic, reason, detail}
	}
	got, sent := known(&at.serves, gets), known(&at.calls, sends)
	r.State, r.Reason, r.Detail = got.State, got.Reason, got.Detail
	if !gets && sends { // it has none, but its callees have
		r.State = HasNumbers
		if at.read == 0 {
			r.Reason, r.Detail = "", ""
		}
	}
	if sent.Reason != r.Reason || sent.Detail != r.Detail || (sent.State == NoData) != (r.State == NoData) {
		r.Sends = &sent
	}
}

// doors are those of several numbers, in any order.
type doors []Door

// list has each door once, ascending; nil if there is none.
func (d doors) list() []Door {
	slices.Sort(d)
	return slices.DeleteFunc(slices.Compact(d), func(door Door) bool { return door == "" })
}

// sorted are rows in an order; never nil.
func sorted(rows []Row, by string) []Row {
	if rows == nil {
		return []Row{}
	}
	ordered := make([]*Row, len(rows)) // rows are large to move
	for i := range rows {
		ordered[i] = &rows[i]
	}
	sortRows(ordered, by)
	out := make([]Row, len(rows))
	for i, row := range ordered {
		out[i] = *row
	}
	return out
}

// sortRows orders rows. Those without numbers come last, those without data before those without traffic.
func sortRows(rows []*Row, by string) {
	rank := map[State]int{HasNumbers: 0, NoData: 1, NoTraffic: 2}
	of := func(p *float64, none float64) float64 {
		if p == nil {
			return none
		}
		return *p
	}
	first := func(*Row, *Row) int { return 0 }
	switch by {
	case "name":
		first = compareNames
	case "rps":
		first = func(a, b *Row) int { return cmp.Compare(b.Requests, a.Requests) }
	case "retries":
		first = func(a, b *Row) int { return cmp.Compare(b.Retries, a.Retries) }
	case "p50":
		first = func(a, b *Row) int { return cmp.Compare(of(b.P50, -1), of(a.P50, -1)) }
	case "p95":
		first = func(a, b *Row) int { return cmp.Compare(of(b.P95, -1), of(a.P95, -1)) }
	case "p99":
		first = func(a, b *Row) int { return cmp.Compare(of(b.P99, -1), of(a.P99, -1)) }
	}
	slices.SortFunc(rows, func(a, b *Row) int {
		if a.State != b.State && by != "name" {
			return cmp.Compare(rank[a.State], rank[b.State])
		}
		if c := cmp.Or(first(a, b), cmp.Compare(of(a.Success, math.Inf(1)), of(b.Success, math.Inf(1))), cmp.Compare(b.Requests, a.Requests)); c != 0 {
			return c
		}
		return compareNames(a, b)
	})
}

func compareNames(a, b *Row) int {
	of := func(p *Peer) *Peer {
		if p == nil {
			return &Peer{}
		}
		return p
	}
	x, y := of(a.From), of(b.From)
	return cmp.Or(
		strings.Compare(a.To.Name, b.To.Name), strings.Compare(a.To.Namespace, b.To.Namespace), strings.Compare(a.To.Cluster, b.To.Cluster), cmp.Compare(a.Port, b.Port),
		strings.Compare(a.Subset, b.Subset), strings.Compare(x.Name, y.Name), strings.Compare(x.Namespace, y.Namespace), strings.Compare(x.Cluster, y.Cluster),
		slices.Compare(a.Doors, b.Doors),
	)
}
