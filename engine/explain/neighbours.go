package explain

import (
	"cmp"
	"slices"

	"github.com/meshctl/meshctl/engine/snapshot"
	"github.com/meshctl/meshctl/engine/traffic"
)

// Neighbours are what stands left and right of a service or workload in the graph of who calls what. Of a service, these are its callers, and
// where its requests go: the targets of its routes, and the workloads of its pods. Of a workload, these are its services, and what it calls.
type Neighbours struct {
	GraphNode
	Left, Right []Neighbour
}

// Neighbour is one end of an edge.
type Neighbour struct {
	GraphNode
	// Edge says what leads there: "4.4/s, 0.4% failed", or "its pods".
	Edge string
	// Crosses: it is in another cluster.
	Crosses bool
	Level   Level
}

// HasNeighbours reports whether objects of a kind stand in the graph.
func HasNeighbours(kind snapshot.Kind) bool {
	return kind == snapshot.Destination || kind == snapshot.Workload
}

// NeighboursOf are those of a service or workload; both sides are empty if it is not known. Calls that are refused are left out, unless
// somebody made them.
func NeighboursOf(x *Index, ref snapshot.Ref) *Neighbours {
	out := &Neighbours{GraphNode: nodeOf(x, ref)}
	if w := x.workloads[ref]; w != nil {
		g := &Graph{}
		for _, service := range x.Refs(snapshot.Destination) {
			d := x.destinations[service]
			if d == nil || d.Mesh == nil {
				continue
			}
			if w.Spec.Kubernetes != nil && backs(w.Spec.Kubernetes, d) {
				out.add(&out.Left, x, service, "its service", OK)
			}
			g.Edges = append(g.Edges, callsOf(x, d, []snapshot.Ref{ref})...)
		}
		out.addCalls(x, g, func(e *GraphEdge) (snapshot.Ref, bool) { return e.To, e.From == ref }, &out.Right)
		return out
	}
	d := x.destinations[ref]
	if d == nil {
		return out
	}
	g := &Graph{}
	if d.Mesh != nil {
		g.Edges = edgesOf(x, d, x.Refs(snapshot.Workload))
	}
	out.addCalls(x, g, func(e *GraphEdge) (snapshot.Ref, bool) { return e.From, e.To == ref && e.Kind != EdgeRoute }, &out.Left)
	for i := range g.Edges {
		if e := &g.Edges[i]; e.Kind == EdgeRoute && e.To != ref && e.To != (snapshot.Ref{}) {
			out.add(&out.Right, x, e.To, e.label(), OK)
		}
	}
	for _, workload := range x.Refs(snapshot.Workload) {
		if w := x.workloads[workload]; w != nil && w.Spec.Kubernetes != nil && backs(w.Spec.Kubernetes, d) {
			out.add(&out.Right, x, workload, "its pods", OK)
		}
	}
	return out
}

// addCalls adds the ends of calls, those that fail most first, then those with the most requests.
func (n *Neighbours) addCalls(x *Index, g *Graph, end func(*GraphEdge) (snapshot.Ref, bool), to *[]Neighbour) {
	if s := x.sight; s != nil && s.Report != nil && s.Report.Read > 0 {
		g.observe(x, []snapshot.Ref{n.Ref}, n.Ref.Kind == snapshot.Workload)
	}
	calls := slices.DeleteFunc(slices.Clone(g.Edges), func(e GraphEdge) bool {
		_, is := end(&e)
		return !is || e.Kind == EdgeRefused && (e.Seen == nil || e.Seen.State != traffic.HasNumbers)
	})
	numbers := func(e *GraphEdge) (failed, requests uint64) {
		if e.Seen == nil {
			return 0, 0
		}
		return e.Seen.Failed, e.Seen.Requests
	}
	slices.SortStableFunc(calls, func(a, b GraphEdge) int {
		failedA, requestsA := numbers(&a)
		failedB, requestsB := numbers(&b)
		return cmp.Or(cmp.Compare(failedB, failedA), cmp.Compare(requestsB, requestsA))
	})
	for i := range calls {
		e, level := &calls[i], OK
		if e.Kind == EdgeRefused || e.Seen != nil && e.Seen.Failing {
			level = Warning
		}
		ref, _ := end(e)
		label := e.label()
		if label == "" {
			label = e.does()
		}
		n.add(to, x, ref, label, level)
	}
}

func (n *Neighbours) add(to *[]Neighbour, x *Index, ref snapshot.Ref, edge string, level Level) {
	other := nodeOf(x, ref)
	if ref == (snapshot.Ref{}) {
		other.Name = map[bool]string{true: "(others)", false: "(not known)"}[n.Ref.Kind == snapshot.Destination]
	}
	*to = append(*to, Neighbour{GraphNode: other, Edge: edge, Level: level, Crosses: other.Cluster != "" && n.Cluster != "" && other.Cluster != n.Cluster})
}
