package traffic

import (
	"cmp"
	"slices"
	"strings"
	"time"

	commonv1 "github.com/meshctl/meshctl/engine/api/common/v1"
	discoveryv1 "github.com/meshctl/meshctl/engine/api/discovery/v1"
	"github.com/meshctl/meshctl/engine/inventory"
	"github.com/meshctl/meshctl/engine/snapshot"
)

// Samples say when the samples of a series are taken.
type Samples struct {
	// End is that of the last sample, and Window how long before it the first one begins.
	End    time.Time
	Window time.Duration
	// Step is how long a sample is, a multiple of Point; the whole window is one if it is zero.
	Step time.Duration
}

// grid is Samples in points.
type grid struct{ first, step, count int64 }

func (s Samples) grid() grid {
	points := int64(min(s.Window, Kept) / Point)
	step := points
	if s.Step > 0 {
		step = min(int64(s.Step/Point), points)
	}
	count := points / step
	return grid{first: numberOf(s.End) - count*step + 1, step: step, count: count}
}

// ends are the times at which the samples end, the oldest first.
func (g grid) ends() []time.Time {
	out := make([]time.Time, g.count)
	for i := range out {
		out[i] = time.Unix((g.first+(int64(i)+1)*g.step)*int64(Point/time.Second), 0).UTC()
	}
	return out
}

// series adds up the points of a grid by what a function makes of each edge: indexes below n.
func (r *Ring) series(g grid, n int, of func(Key) []int) [][]Values {
	out := make([][]Values, n)
	byID := make([][]int, len(r.edges))
	looked := make([]bool, len(r.edges))
	for i := range r.points {
		p := &r.points[i]
		if p.number < g.first || p.number >= g.first+g.count*g.step {
			continue
		}
		at := (p.number - g.first) / g.step
		p.each(func(id uint64, measures []byte) {
			id = r.ended(id)
			if !looked[id] {
				looked[id], byID[id] = true, of(r.edges[id].key)
			}
			for _, index := range byID[id] {
				if out[index] == nil {
					out[index] = make([]Values, g.count)
				}
				add(&out[index][at], measures)
			}
		})
	}
	return out
}

// Series are the numbers of something at several times, in lists of the same length. The names are those of the REST API of Gloo Mesh 1.x.
type Series struct {
	// Times are the ends of the samples, ascending.
	Times []time.Time `json:"timestamps"`
	// Requests are those of a sample, Successes those that were answered with less than 500 and not refused, Failures the others.
	Requests  []uint64      `json:"requestCount"`
	Successes []uint64      `json:"successCount"`
	Failures  []uint64      `json:"failureCount"`
	Latencies []Percentiles `json:"requestLatencies"`
}

// Percentiles are in milliseconds, as in Numbers; none without answers.
type Percentiles struct {
	P99 *float64 `json:"p99,omitempty"`
	P90 *float64 `json:"p90,omitempty"`
	P50 *float64 `json:"p50,omitempty"`
}

// seriesOf leaves out the samples that ended before something was counted: what was then is not known. Values is nil if nothing came.
func seriesOf(ends []time.Time, values []Values, since time.Time) Series {
	s := Series{Times: []time.Time{}, Requests: []uint64{}, Successes: []uint64{}, Failures: []uint64{}, Latencies: []Percentiles{}}
	for i, end := range ends {
		if !end.After(since) {
			continue
		}
		v := &Values{}
		if values != nil {
			v = &values[i]
		}
		all, served := v.Requests(), v.Served()
		s.Times = append(s.Times, end)
		s.Requests = append(s.Requests, all)
		s.Successes = append(s.Successes, served)
		s.Failures = append(s.Failures, all-served)
		s.Latencies = append(s.Latencies, Percentiles{P99: v.quantile(0.99), P90: v.quantile(0.9), P50: v.quantile(0.5)})
	}
	return s
}

// NodeSeries are what a workload sends and gets.
type NodeSeries struct {
	Workload commonv1.ClusterObjectRef `json:"workloadRef"`
	Outgoing Series                    `json:"outgoingMetrics"`
	Incoming Series                    `json:"incomingMetrics"`
	// State, Reason and Detail are as in a Row. Without data there are no samples.
	State  State  `json:"state"`
	Reason Reason `json:"reason,omitempty"`
	Detail string `json:"detail,omitempty"`
	// Sends is as in a Row.
	Sends *Known `json:"sends,omitempty"`
}

// SeriesOfNodes are the workloads that are wanted, ascending.
func (r *Ring) SeriesOfNodes(c *Context, s Samples, wanted func(*discoveryv1.KubernetesWorkload) bool) []NodeSeries {
	g, index := s.grid(), map[snapshot.Ref]int{}
	out := []NodeSeries{}
	states := map[snapshot.Ref]Row{}
	for _, row := range r.Report(s.End, c, Query{By: ByWorkload, Window: s.Window, Sort: "name"}).Rows {
		states[row.To.Ref] = row
	}
	for _, w := range c.State.Plan.Workloads {
		k, row := w.Spec.Kubernetes, states[snapshot.RefOf(snapshot.Workload, w)]
		if k == nil || !wanted(k) {
			continue
		}
		index[snapshot.RefOf(snapshot.Workload, w)] = len(out)
		out = append(out, NodeSeries{Workload: k.Controller, State: row.State, Reason: row.Reason, Detail: row.Detail, Sends: row.Sends})
	}
	values := r.series(g, 2*len(out), func(key Key) (to []int) {
		if key.Serves() {
			if i, wanted := index[key.To]; wanted {
				to = append(to, 2*i+1)
			}
		} else if i, wanted := index[key.From]; wanted {
			to = append(to, 2*i)
		}
		return to
	})
	ends := g.ends()
	// Of what is not counted, a zero would be an answer.
	side := func(known Known, of []Values) Series {
		if known.State == NoData || of == nil && known.Reason == Uncounted {
			return seriesOf(nil, of, r.since)
		}
		return seriesOf(ends, of, r.since)
	}
	for i := range out {
		got := Known{State: out[i].State, Reason: out[i].Reason, Detail: out[i].Detail}
		sent := got
		if out[i].Sends != nil {
			sent = *out[i].Sends
		}
		out[i].Outgoing, out[i].Incoming = side(sent, values[2*i]), side(got, values[2*i+1])
	}
	slices.SortFunc(out, func(a, b NodeSeries) int { return compareRefs(a.Workload, b.Workload) })
	return out
}

// EdgeSeries are what a workload sends to a service, as the proxy of the sender counts it. Which of several workloads behind the service
// answered, it does not know.
type EdgeSeries struct {
	Source commonv1.ClusterObjectRef `json:"sourceWorkloadRef"`
	// Target is the workload behind the service, or the subset of it, if there is one only, and Targets are all of them, ascending.
	Target  *commonv1.ClusterObjectRef  `json:"targetWorkloadRef,omitempty"`
	Targets []commonv1.ClusterObjectRef `json:"targetWorkloadRefs,omitempty"`
	// Service is what was called; for a VirtualDestination, its hostname and namespace.
	Service commonv1.ClusterObjectRef `json:"targetServiceRef"`
	Subset  string                    `json:"targetSubset,omitempty"`
	Metrics Series                    `json:"metrics"`
}

// SeriesOfEdges are those of which something came in the window and that are wanted: a pair of workloads, of which the second one is behind what was
// called. They ascend.
func (r *Ring) SeriesOfEdges(c *Context, s Samples, wanted func(source, target *discoveryv1.KubernetesWorkload) bool) []EdgeSeries {
	g, peers, sources := s.grid(), NewPeers(c.State.Plan), map[snapshot.Ref]*discoveryv1.KubernetesWorkload{}
	for _, w := range c.State.Plan.Workloads {
		if w.Spec.Kubernetes != nil {
			sources[snapshot.RefOf(snapshot.Workload, w)] = w.Spec.Kubernetes
		}
	}
	behind := newBehind(c.State.Plan)
	out, index := []EdgeSeries{}, map[Key]int{}
	// The edges of a pair differ in port and door, and are one here.
	pair := func(key Key) Key { return Key{From: key.From, To: key.To, Subset: key.Subset} }
	for key := range r.ids {
		source := sources[key.From]
		if key.Serves() || source == nil {
			continue
		}
		if _, known := index[pair(key)]; known {
			continue
		}
		targets := behind.of(key.To, key.Subset)
		if !slices.ContainsFunc(targets, func(target *discoveryv1.KubernetesWorkload) bool { return wanted(source, target) }) {
			continue
		}
		to := peers.Of(key.To)
		e := EdgeSeries{Source: source.Controller, Service: commonv1.ClusterObjectRef{Name: to.Name, Namespace: to.Namespace, ClusterName: to.Cluster}, Subset: key.Subset}
		for _, target := range targets {
			e.Targets = append(e.Targets, target.Controller)
		}
		slices.SortFunc(e.Targets, compareRefs)
		if len(e.Targets) == 1 {
			e.Target = &e.Targets[0]
		}
		index[pair(key)] = len(out)
		out = append(out, e)
	}
	values := r.series(g, len(out), func(key Key) []int {
		if i, wanted := index[pair(key)]; wanted && !key.Serves() {
			return []int{i}
		}
		return nil
	})
	ends := g.ends()
	kept := out[:0]
	for i := range out {
		if values[i] != nil {
			out[i].Metrics = seriesOf(ends, values[i], r.since)
			kept = append(kept, out[i])
		}
	}
	slices.SortFunc(kept, func(a, b EdgeSeries) int {
		return cmp.Or(compareRefs(a.Source, b.Source), compareRefs(a.Service, b.Service), strings.Compare(a.Subset, b.Subset))
	})
	return kept
}

func compareRefs(a, b commonv1.ClusterObjectRef) int {
	return slices.Compare([]string{a.Name, a.Namespace, a.ClusterName}, []string{b.Name, b.Namespace, b.ClusterName})
}

// behind finds the workloads behind what is called.
type behind struct {
	workloads *inventory.Behind
	services  map[snapshot.Ref][]*discoveryv1.KubeService
	subsets   map[snapshot.Ref]map[string]map[string]string // labels, by name
}

func newBehind(plan *snapshot.Plan) *behind {
	b := &behind{
		workloads: inventory.NewBehind(plan.Workloads), services: map[snapshot.Ref][]*discoveryv1.KubeService{},
		subsets: map[snapshot.Ref]map[string]map[string]string{},
	}
	for d := range plan.Destinations.All() {
		b.services[d.Ref] = []*discoveryv1.KubeService{d.Destination.Spec.KubeService}
		for _, view := range d.Views {
			b.addSubsets(d.Ref, view.Subsets)
		}
	}
	for _, v := range plan.VirtualDestinations {
		for _, backing := range v.Backing {
			b.services[v.Ref] = append(b.services[v.Ref], backing.Destination.Spec.KubeService)
		}
		b.addSubsets(v.Ref, v.Subsets)
	}
	return b
}

func (b *behind) addSubsets(of snapshot.Ref, subsets []snapshot.Subset) {
	for _, s := range subsets {
		if b.subsets[of] == nil {
			b.subsets[of] = map[string]map[string]string{}
		}
		b.subsets[of][s.Name] = s.Labels
	}
}

// of are the workloads that pods of what is called belong to. Those of a subset that is not in the Plan any more are not known.
func (b *behind) of(to snapshot.Ref, subset string) (out []*discoveryv1.KubernetesWorkload) {
	labels, known := b.subsets[to][subset]
	if subset != "" && !known {
		return nil
	}
	for _, s := range b.services[to] {
		for _, w := range b.workloads.Of(s, labels) {
			out = append(out, w.Spec.Kubernetes)
		}
	}
	return out
}
