package explain

import (
	"cmp"
	"math"
	"slices"
	"strings"

	"github.com/meshctl/meshctl/engine/snapshot"
	"github.com/meshctl/meshctl/engine/traffic"
)

// Graph is who may call some services, and where requests for them go.
type Graph struct {
	Edges []GraphEdge `json:"edges"`
	// More is how many edges are left out.
	More int `json:"more,omitempty"`
	// Services is how many services are left out, with all of their edges.
	Services int `json:"moreServices,omitempty"`
	// Nodes name the ends of edges, in the order in which they come up.
	Nodes []GraphNode `json:"nodes,omitempty"`
	// Window is the time that the numbers are of, such as "last 15m"; empty if there are none, and Unseen says why, unless nobody counts by
	// nature, as for a folder.
	Window string `json:"window,omitempty"`
	Unseen string `json:"unseen,omitempty"`
}

// GraphChange is a Graph before and after a change.
type GraphChange struct {
	Before *Graph `json:"before"`
	After  *Graph `json:"after"`
}

// EdgeKind says what an edge of a Graph is.
type EdgeKind string

// The kinds of edges.
const (
	// EdgeRoute: requests for From go to To.
	EdgeRoute EdgeKind = "route"
	// EdgeCall: workload From may call service To.
	EdgeCall EdgeKind = "call"
	// EdgeRefused: workload From reaches service To, which does not let it in.
	EdgeRefused EdgeKind = "refused"
	// EdgeSeen: requests of From to To were counted, and it is none of the others. A From or To that is zero is several, or not known.
	EdgeSeen EdgeKind = "seen"
)

// GraphEdge leads from a workload or service to a service.
type GraphEdge struct {
	Kind EdgeKind     `json:"kind"`
	From snapshot.Ref `json:"from"`
	// To is the service; zero for a host outside of all clusters.
	To snapshot.Ref `json:"to,omitzero"`
	// Host is set for a target of a route that is no service.
	Host string `json:"host,omitempty"`
	// Subset is the part of To that a route is for; empty for all of it.
	Subset string `json:"subset,omitempty"`
	// Requests says which a route takes, and Share how many of them go this way, in percent.
	Requests string  `json:"requests,omitempty"`
	Share    float64 `json:"share,omitempty"`
	// Changed: the other graph of a GraphChange has no such edge.
	Changed bool `json:"changed,omitempty"`
	// Seen is what was counted; nil if nobody counts.
	Seen *GraphSeen `json:"seen,omitempty"`
}

// MostEdges bounds the edges of a Graph in a text for people, and mostServices the services that a change draws.
const (
	MostEdges    = 30
	mostServices = 10
)

// GraphOf is the graph of some services; those that are not known have no edges. Edges are ordered by service, routes first and
// refusals last. Most bounds them; 0 is all.
func GraphOf(x *Index, services []snapshot.Ref, most int) *Graph {
	g := &Graph{Edges: []GraphEdge{}}
	callers := x.Refs(snapshot.Workload)
	for _, ref := range services {
		if d := x.destinations[ref]; d != nil && d.Mesh != nil {
			g.Edges = append(g.Edges, edgesOf(x, d, callers)...)
		}
	}
	return g.bounded(most)
}

func (g *Graph) bounded(most int) *Graph {
	if most > 0 && len(g.Edges) > most {
		g.More = len(g.Edges) - most
		g.Edges = g.Edges[:most:most]
	}
	return g
}

// edgesOf are the edges of a service: its routes, and its callers.
func edgesOf(x *Index, d *snapshot.DestinationPlan, callers []snapshot.Ref) []GraphEdge {
	var out []GraphEdge
	for _, v := range x.unwritten.viewsOf(d) {
		for _, r := range v.Routes {
			for _, t := range describing(x).route(r).Targets {
				edge := GraphEdge{Kind: EdgeRoute, From: d.Ref, To: t.Destination, Subset: t.Subset, Requests: requestsOf(r.Match), Share: t.Share}
				if t.Destination.Kind != snapshot.Destination && t.Destination.Kind != snapshot.VirtualDestination {
					edge.To, edge.Host = snapshot.Ref{}, t.Host
				}
				if !slices.Contains(out, edge) { // meshes have the same routes by other names
					out = append(out, edge)
				}
			}
		}
	}
	out = append(out, callsOf(x, d, callers)...)
	slices.SortStableFunc(out, func(a, b GraphEdge) int { return cmp.Compare(a.order(), b.order()) })
	return out
}

// callsOf are the calls of a service, allowed or refused, of some workloads.
func callsOf(x *Index, d *snapshot.DestinationPlan, callers []snapshot.Ref) (out []GraphEdge) {
	gate := x.gateTo(d)
	for _, ref := range callers {
		workload := x.workloads[ref]
		mesh := x.meshOf(workload)
		if mesh == nil || !reaches(mesh, d) || isGateway(workload) {
			continue
		}
		kind := EdgeRefused
		if may, _ := gate.admits(workload); may {
			kind = EdgeCall
		}
		out = append(out, GraphEdge{Kind: kind, From: ref, To: d.Ref})
	}
	return out
}

func (e *GraphEdge) order() int {
	return slices.Index([]EdgeKind{EdgeRoute, EdgeCall, EdgeRefused, EdgeSeen}, e.Kind)
}

// changedGraph has the edges of the services that effects are about: those that change first. Nil if there are none.
func changedGraph(before, after *Index, effects []Effect) *GraphChange {
	var services []snapshot.Ref
	for i := range effects {
		e := &effects[i]
		if on := e.On; on.Kind == snapshot.Destination && (e.Kind == EffectAccess || e.Kind == EffectReach || e.Kind == EffectRoute) && !slices.Contains(services, on) {
			if services = append(services, on); len(services) > mostServices {
				break
			}
		}
	}
	if len(services) == 0 {
		return nil
	}
	left := 0
	if len(services) > mostServices {
		services = services[:mostServices]
		left = servicesIn(effects) - mostServices
	}
	slices.SortFunc(services, snapshot.Ref.Compare)
	was, is := GraphOf(before, services, 0), GraphOf(after, services, 0)
	was.markChanged(is.Edges, false)
	is.markChanged(was.Edges, true)
	for _, g := range []*Graph{was, is} {
		g.Services = left
		slices.SortStableFunc(g.Edges, func(a, b GraphEdge) int {
			return cmp.Compare(map[bool]int{true: 0, false: 1}[a.Changed], map[bool]int{true: 0, false: 1}[b.Changed])
		})
		g.bounded(MostEdges)
	}
	return &GraphChange{Before: was, After: is}
}

// servicesIn counts the services that effects are about.
func servicesIn(effects []Effect) int {
	seen := map[snapshot.Ref]bool{}
	for i := range effects {
		if on := effects[i].On; on.Kind == snapshot.Destination {
			seen[on] = true
		}
	}
	return len(seen)
}

// markChanged marks the edges that others do not have. Marked: the others are marked already.
func (g *Graph) markChanged(others []GraphEdge, marked bool) {
	had := map[GraphEdge]bool{}
	for _, e := range others {
		if marked {
			e.Changed = false
		}
		had[e] = true
	}
	for i := range g.Edges {
		g.Edges[i].Changed = !had[g.Edges[i]]
	}
}

// nodes are the names of the ends of edges, in the order in which they come up, with whether they are services.
func (g *Graph) nodes() (names []string, services map[string]bool) {
	services = map[string]bool{}
	for i := range g.Edges {
		e := &g.Edges[i]
		for _, name := range []string{e.fromName(), e.toName()} {
			if !slices.Contains(names, name) {
				names = append(names, name)
			}
		}
		services[e.toName()] = true
		services[e.fromName()] = services[e.fromName()] || e.Kind == EdgeRoute
	}
	return names, services
}

// fromName is what an edge comes from.
func (e *GraphEdge) fromName() string { return cmp.Or(e.From.Name, "(others)") }

// toName is what an edge leads to: "reviews-bookinfo-cluster-1, version-v1".
func (e *GraphEdge) toName() string {
	name := cmp.Or(e.Host, e.To.Name, "(not known)")
	if e.Subset != "" {
		name += ", " + e.Subset
	}
	return name
}

// label is what stands on an edge; empty for calls of which nothing is known.
func (e *GraphEdge) label() string {
	label := ""
	switch {
	case e.Kind == EdgeRefused:
		label = "refused"
	case e.Kind != EdgeRoute:
	case e.Requests == allRequests || e.Requests == "":
		label = snapshot.Percent(e.Share)
	default:
		label = snapshot.Percent(e.Share) + " of " + e.Requests
	}
	if e.Seen == nil {
		return label
	}
	seen := e.Seen.text()
	if e.Kind == EdgeRoute && e.Seen.State == traffic.HasNumbers {
		seen = "seen " + snapshot.Percent(math.Round(e.Seen.Share*10)/10) + ", " + seen
	}
	if label == "" {
		return seen
	}
	return label + "; " + seen
}

// left says what is not drawn; empty if all is.
func (g *Graph) left() string {
	var parts []string
	if g.More > 0 {
		parts = append(parts, snapshot.Count(g.More, "more edge"))
	}
	if g.Services > 0 {
		parts = append(parts, snapshot.Count(g.Services, "more service"))
	}
	return strings.Join(parts, ", ")
}
