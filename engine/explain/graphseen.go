package explain

import (
	"cmp"
	"slices"
	"strconv"

	"github.com/meshctl/meshctl/engine/snapshot"
	"github.com/meshctl/meshctl/engine/traffic"
)

// GraphNode is an end of edges.
type GraphNode struct {
	Ref snapshot.Ref `json:"ref"`
	// Name, Namespace and Cluster are those of the controller or the Service; the host of a VirtualDestination is its name.
	Name      string `json:"name"`
	Namespace string `json:"namespace,omitempty"`
	Cluster   string `json:"cluster,omitempty"`
}

// GraphSeen is what was counted on an edge.
type GraphSeen struct {
	// State says whether there are numbers, and Why why there is no data; else it is empty.
	State traffic.State `json:"state"`
	Why   string        `json:"why,omitempty"`
	SeenCount
	// PerSecond is the rate of requests, and Share the part of the requests of a route that went this way, in percent.
	PerSecond float64 `json:"perSecond"`
	Share     float64 `json:"share,omitempty"`
	// Via is how requests get there: local, gateway, or direct to another cluster; empty if that is not known.
	Via string `json:"via,omitempty"`
	// Connections were opened; Handshakes are those of TLS that were completed, one for each connection that is encrypted. Proxies may count
	// neither.
	Connections uint64 `json:"connections,omitempty"`
	Handshakes  uint64 `json:"handshakes,omitempty"`
	// Failing: more requests fail than may.
	Failing bool `json:"failing,omitempty"`
}

// pair are the ends of a call.
type pair struct{ from, to snapshot.Ref }

// SeenOptions say what a SeenGraph has.
type SeenOptions struct {
	// All: the services are all that there are. Calls to what is none of them belong to it, too.
	All bool
	// Only: it has only the edges with numbers, if there are any numbers.
	Only bool
	// Most bounds the edges; 0 is all.
	Most int
}

// SeenGraph is the graph of some services, with what was counted on its edges, and with the calls that were counted and that the graph does not
// have. Where nobody counts by nature, it is the graph alone; where there are no numbers, Unseen says why.
func SeenGraph(x *Index, services []snapshot.Ref, o SeenOptions) *Graph {
	g := GraphOf(x, services, 0)
	s := x.sight
	switch {
	case s == nil:
	case s.Report == nil:
		g.Unseen = s.Unknown
	case s.Report.Read == 0:
		g.Unseen = "no proxy was read; `meshctl top workloads` says why"
	default:
		g.Window = s.window()
		g.observe(x, services, o.All)
		if o.Only {
			g.Edges = slices.DeleteFunc(g.Edges, func(e GraphEdge) bool { return e.Seen == nil || e.Seen.State != traffic.HasNumbers })
		}
	}
	g.bounded(o.Most)
	g.Nodes = g.named(x)
	return g
}

// observe adds what was counted to the edges.
func (g *Graph) observe(x *Index, services []snapshot.Ref, all bool) {
	asked := map[snapshot.Ref]bool{{}: all}
	for _, ref := range services {
		asked[ref] = true
	}
	counts := map[pair]*GraphSeen{}
	for to, rows := range x.sight.edgesTo {
		for _, row := range rows {
			if at := (pair{row.From.Ref, to}); asked[to] || all {
				if counts[at] == nil {
					counts[at] = &GraphSeen{State: traffic.HasNumbers}
				}
				counts[at].add(row)
			}
		}
	}
	for i := range g.Edges {
		e := &g.Edges[i]
		if e.Kind == EdgeRoute {
			e.Seen = shareSeen(x.sight, e)
			continue
		}
		at := pair{e.From, e.To}
		if e.Seen = counts[at]; e.Seen == nil {
			e.Seen = uncalled(x.sight, e.From)
		}
		delete(counts, at)
	}
	more := make([]GraphEdge, 0, len(counts))
	for at, seen := range counts {
		more = append(more, GraphEdge{Kind: EdgeSeen, From: at.from, To: at.to, Seen: seen})
	}
	slices.SortFunc(more, func(a, b GraphEdge) int { return cmp.Or(a.To.Compare(b.To), a.From.Compare(b.From)) })
	g.Edges = append(g.Edges, more...)
}

func (o *GraphSeen) add(row *traffic.Row) {
	o.SeenCount.add(row)
	o.PerSecond += row.PerSecond
	o.Via = cmp.Or(o.Via, row.Via)
	o.Connections += row.Connections
	o.Handshakes += row.Handshakes
	o.Failing = o.Requests >= fewestRequests && percent(o.Failed, o.Requests) > mostFailures
}

// uncalled is what was counted of a call that nobody made: nothing is known if the proxies of the caller were not read.
func uncalled(s *sight, from snapshot.Ref) *GraphSeen {
	if known, why := s.sending(from); !known {
		return &GraphSeen{State: traffic.NoData, Why: why}
	}
	return &GraphSeen{State: traffic.NoTraffic}
}

// shareSeen is what was counted of a target of the shifts that ask for its share, by the callers of all meshes; nil for other routes, whose
// requests are those of their calls.
func shareSeen(s *sight, e *GraphEdge) *GraphSeen {
	out, requests := &GraphSeen{State: traffic.NoTraffic}, uint64(0)
	found := false
	for _, policy := range sortedRefs(s.shifts) {
		for i := range s.shifts[policy] {
			shift := &s.shifts[policy][i]
			if shift.Destination != e.From {
				continue
			}
			for j := range shift.Targets {
				t := &shift.Targets[j]
				if t.Elsewhere || t.Destination != e.To || t.Subset != e.Subset || t.Asked != e.Share {
					continue
				}
				found = true
				out.Requests += t.Requests
				requests += shift.Requests
			}
		}
	}
	if !found {
		return nil
	}
	if requests > 0 {
		out.State, out.Share = traffic.HasNumbers, percent(out.Requests, requests)
		out.PerSecond = float64(out.Requests) / s.Report.Seconds
	}
	return out
}

// named are the ends of the edges, each once, in the order in which they come up.
func (g *Graph) named(x *Index) []GraphNode {
	var out []GraphNode
	had := map[snapshot.Ref]bool{{}: true}
	for i := range g.Edges {
		for _, ref := range []snapshot.Ref{g.Edges[i].From, g.Edges[i].To} {
			if had[ref] {
				continue
			}
			had[ref] = true
			out = append(out, nodeOf(x, ref))
		}
	}
	return out
}

func nodeOf(x *Index, ref snapshot.Ref) GraphNode {
	n := GraphNode{Ref: ref, Name: ref.Name, Namespace: ref.Namespace}
	if w := x.workloads[ref]; w != nil && w.Spec.Kubernetes != nil {
		at := w.Spec.Kubernetes.Controller
		n.Name, n.Namespace, n.Cluster = at.Name, at.Namespace, at.ClusterName
	}
	if d := x.destinations[ref]; d != nil && d.Destination.Spec.KubeService != nil {
		at := d.Destination.Spec.KubeService.Ref
		n.Name, n.Namespace, n.Cluster = at.Name, at.Namespace, at.ClusterName
	}
	return n
}

// text is what was counted, for people: "4.4/s, 0.4% failed, TLS, through a gateway".
func (o *GraphSeen) text() string {
	switch {
	case o == nil:
		return ""
	case o.State != traffic.HasNumbers:
		return string(o.State)
	}
	text := strconv.FormatFloat(o.PerSecond, 'f', 1, 64) + "/s"
	if o.Requests == 0 {
		text = counting(o.Connections, "connection")
	}
	if o.Failed > 0 {
		text += ", " + shareText(o.Failed, o.Requests) + " failed"
	}
	if o.Refused > 0 {
		text += ", " + shareText(o.Refused, o.Requests) + " refused"
	}
	if tls := o.tlsText(); tls != "" {
		text += ", " + tls
	}
	switch o.Via {
	case "gateway":
		text += ", through a gateway"
	case "direct":
		text += ", to another cluster"
	}
	return text
}

// tlsText says whether the connections are encrypted; empty if that is not known.
func (o *GraphSeen) tlsText() string {
	switch {
	case o.Handshakes == 0:
		return ""
	case o.Handshakes >= o.Connections:
		return "TLS"
	}
	return shareText(o.Handshakes, o.Connections) + " with TLS"
}
