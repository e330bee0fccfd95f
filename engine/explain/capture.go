package explain

import (
	"fmt"
	"net/netip"
	"slices"

	discoveryv1 "github.com/meshctl/meshctl/engine/api/discovery/v1"
	"github.com/meshctl/meshctl/engine/snapshot"
)

// This file is about connections that pass proxies by: those that callers open (KubernetesWorkload.Capture), and those that pods get
// (EndpointPort.PastProxy).

// escape is a connection of callers that their proxies do not see, or may not.
type escape struct {
	// by says in a clause because of what; empty if they see it.
	by string
	// sure: they do not see it. Else they may.
	sure bool
}

// escapes says whether the proxies of a workload see connections to a port of some addresses, which are not known if there are none.
func escapes(workload *discoveryv1.Workload, port uint32, addresses []string) escape {
	k := workload.Spec.Kubernetes
	if k == nil || k.Capture == nil {
		return escape{}
	}
	c, whose := k.Capture, "the pods of "+workload.Name
	switch {
	case c.Unclear:
		return escape{by: "annotations of " + whose + ", or settings of their injector, which cannot be read, take connections out of their proxies"}
	case c.None:
		return escape{by: whose + " have interception mode NONE: their proxies see only what the application sends to them"}
	case slices.Contains(c.ExcludePorts, port):
		return escape{by: fmt.Sprintf("excludeOutboundPorts of %s takes port %d out of their proxies", whose, port), sure: true}
	}
	excluded := rangesHold(c.ExcludeRanges, addresses)
	included := rangesHold(c.IncludeRanges, addresses)
	ranges := escape{by: "excludeOutboundIPRanges of " + whose + " takes the address of the service out of their proxies", sure: true}
	left := escape{by: "includeOutboundIPRanges of " + whose + " leaves the address of the service out of their proxies", sure: true}
	switch {
	case excluded == inRanges:
		return ranges
	case excluded == mayBeInRanges:
		ranges.by, ranges.sure = "excludeOutboundIPRanges of "+whose+" may take the address of the service, which is not known, out of their proxies", false
		return ranges
	case !c.OnlyIncluded, slices.Contains(c.IncludePorts, port), included == inRanges:
		return escape{}
	case included == mayBeInRanges:
		left.by, left.sure = "includeOutboundIPRanges of "+whose+" may leave the address of the service, which is not known, out of their proxies", false
	}
	return left
}

// held is whether addresses are in ranges.
type held uint8

const (
	outOfRanges held = iota
	mayBeInRanges
	inRanges
)

// rangesHold reports whether ranges hold all of some addresses, or none. Without ranges, they hold none.
func rangesHold(ranges, addresses []string) held {
	if len(ranges) == 0 {
		return outOfRanges
	}
	in := 0
	for _, text := range addresses {
		address, err := netip.ParseAddr(text)
		if err == nil && slices.ContainsFunc(ranges, func(r string) bool {
			prefix, err := netip.ParsePrefix(r)
			return err == nil && prefix.Contains(address)
		}) {
			in++
		}
	}
	switch {
	case len(addresses) > 0 && in == len(addresses):
		return inRanges
	case len(addresses) > 0 && in == 0:
		return outOfRanges
	}
	return mayBeInRanges
}

// capturedText says which connections of a workload its proxies do not see; empty if they see all.
func capturedText(workload *discoveryv1.Workload) string {
	k := workload.Spec.Kubernetes
	if k == nil || k.Capture == nil {
		return ""
	}
	c := k.Capture
	switch {
	case c.Unclear:
		return "connections that its annotations, or settings of its injector, take out, which cannot be read"
	case c.None:
		return "all that is not sent to the proxies themselves (interception mode NONE)"
	}
	var parts []string
	if len(c.ExcludePorts)+len(c.ExcludeRanges) > 0 {
		parts = append(parts, "connections to "+firstOf(append(portNames(c.ExcludePorts), c.ExcludeRanges...)))
	}
	if c.OnlyIncluded {
		included := append(portNames(c.IncludePorts), c.IncludeRanges...)
		if len(included) == 0 {
			return "all connections"
		}
		parts = append(parts, "connections to all but "+firstOf(included))
	}
	return snapshot.Sentences(parts...) + "; no policy for callers holds for them"
}

func portNames(ports []uint32) []string {
	names := make([]string, len(ports))
	for i, p := range ports {
		names[i] = fmt.Sprintf("port %d", p)
	}
	return names
}

// calledAt are those to which applications in the cluster of a Destination connect: of its Service, or, of a headless one, of its
// pods. None if they are not known.
func calledAt(x *Index, d *snapshot.DestinationPlan) (out []string) {
	k, c := d.Destination.Spec.KubeService, x.clusters[x.clusterOf(d.Ref)]
	if k == nil {
		return nil
	}
	if k.Headless {
		for _, e := range endpointsOf(d, nil) {
			out = append(append(out, e.IpAddress), e.OtherAddresses...)
		}
		return out
	}
	if c == nil {
		return nil
	}
	service := findService(c, k.Ref.Namespace, k.Ref.Name)
	if service == nil {
		return nil
	}
	addresses := service.Spec.ClusterIPs
	if len(addresses) == 0 {
		addresses = []string{service.Spec.ClusterIP}
	}
	return slices.DeleteFunc(slices.Clone(addresses), func(a string) bool { return a == "" })
}

// escapesTo says whether the proxies of a workload see what it sends to a Destination. Of a name that only the mesh knows, the address is
// no matter of the cluster.
func escapesTo(x *Index, workload *discoveryv1.Workload, mesh *snapshot.MeshPlan, d *snapshot.DestinationPlan, port uint32) escape {
	if isGateway(workload) {
		return escape{}
	}
	if d == nil || d.Mesh.Ref != mesh.Ref {
		out := escapes(workload, port, nil)
		out.sure = false
		return out
	}
	return escapes(workload, port, calledAt(x, d))
}

// pastOf is how callers connect past their proxies.
func (e escape) pastOf() connection { return connection{plain: e.by, foreign: true, past: true} }

// answerEscaped answers for a Destination to which the callers' proxies do not see requests, or may not, and reports whether that is so.
// Without a Destination, it is what only the mesh knows.
func answerEscaped(q *query, out *Why, d *snapshot.DestinationPlan) bool {
	e := escapesTo(q.Index, q.workload, q.mesh, d, q.request.Port)
	switch {
	case e.by == "":
		return false
	case !e.sure:
		out.Verdict, out.Reason = Unknown, e.by+"; what passes them by takes no route, and presents no identity"
	default:
		q.answerPast(out, d, e.pastOf())
		out.Notes = append(out.Notes, e.by+": no route and no setting applies, and the callers present no identity")
	}
	return true
}

// answerPast answers for requests that reach a Destination past the proxies of the callers.
func (q *query) answerPast(out *Why, d *snapshot.DestinationPlan, how connection) {
	past := Outcome{Destination: d.Ref, Host: out.Host, Port: q.request.Port, Cluster: q.clusterOf(d.Ref), service: serviceRef(d), past: true}
	ready := len(endpointsOf(d, nil))
	past.Endpoints, past.Hops = &ready, []Hop{{To: "a pod of " + d.Ref.Name, Cluster: d.Mesh.Cluster}}
	out.Outcomes = divide(q.decided(past, d, q.request.Port, how, nil), whole)
	out.NotEvaluated = append(out.NotEvaluated, "whether the network of the cluster lets them reach its pods past the mesh")
}

// toPastProxy is what becomes of calls to a port that pods take out of their proxies: callers do not know that.
func (g *podGroup) toPastProxy(how connection) judged {
	where := fmt.Sprintf("port %d of the pods passes their proxies by (excludeInboundPorts or includeInboundPorts)", g.port)
	plain := how.plain != "" || g.plain != "" && !how.mutual() && !how.foreign
	if g.guard != nil && !how.mutual() && !how.foreign {
		tls, _ := g.guard.TLS(g.port)
		plain = plain || tls == snapshot.TLSNone || tls == snapshot.TLSUnmet
	}
	switch {
	case g.pastProxy == discoveryv1.PastProxyUncaptured:
		return judged{verdict: Unknown, byHand: true, reason: "the pods have interception mode NONE: whether a proxy listens on port " + fmt.Sprint(g.port) + ", and decides, is not known"}
	case how.other != "" || how.unknown != "":
		return judged{verdict: Unknown, byHand: true, reason: where + ": whether what listens there takes TLS is not known"}
	case !plain:
		return judged{verdict: Unreachable, byHand: true, reason: how.comeWithMutual() + ", and " + where}
	}
	return judged{verdict: Allowed, byHand: true, reason: where + ", so that no policy decides who may call them"}
}

// pastProxyAt says how connections to a port of endpoints pass their proxies by; empty if they do not.
func pastProxyAt(part *discoveryv1.EndpointSubset, number uint32) string {
	for _, p := range part.Ports {
		if p.Port == number {
			return p.PastProxy
		}
	}
	return ""
}
