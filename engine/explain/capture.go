package explain

import (
	"fmt"
	"net/netip"

	corev1 "k8s.io/api/core/v1"

	discoveryv1 "github.com/meshctl/meshctl/engine/api/discovery/v1"
	"github.com/meshctl/meshctl/engine/snapshot"
)

// This file is about connections that pass proxies by: those that callers open (KubernetesWorkload.Capture), and those that pods get
// (EndpointPort.PastProxy).

// capturedText says which connections of a workload its proxies do not see; empty if they see all.
func capturedText(workload *discoveryv1.Workload) string {
	k := workload.Spec.Kubernetes
	if k == nil || k.Capture == nil {
		return ""
	}
	c := k.Capture
	switch {
	case c.Unclear:
		return "connections that its annotations, or settings of its injector, take out, which cannot be read or name interfaces"
	case c.None:
		return "all that is not sent to the proxies themselves (interception mode NONE)"
	}
	var parts []string
	switch c.AsProxy {
	case discoveryv1.AsProxyAll:
		return "all connections, as its containers run as the user or group of the proxies; no policy for callers holds for them"
	case discoveryv1.AsProxySome:
		parts = append(parts, "connections of containers that run as the user or group of the proxies")
	}
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

// escapesTo says whether the proxies of a workload see what it sends to a Destination. Of a name that only the mesh knows, the address is
// no matter of the cluster.
func escapesTo(x *Index, workload *discoveryv1.Workload, mesh *snapshot.MeshPlan, d *snapshot.DestinationPlan, port uint32) snapshot.Escape {
	if isGateway(workload) {
		return snapshot.Escape{}
	}
	if d == nil || d.Mesh.Ref != mesh.Ref {
		out := snapshot.Escapes(workload, port, nil)
		out.Sure = false
		return out
	}
	return snapshot.Escapes(workload, port, calledAt(x, d))
}

// calledAt are the addresses to which callers in the cluster of a Destination connect.
func calledAt(x *Index, d *snapshot.DestinationPlan) []netip.Prefix {
	var services []*corev1.Service
	if c := x.clusters[x.clusterOf(d.Ref)]; c != nil {
		services = c.Services
	}
	return snapshot.CalledAt(d.Destination.Spec.KubeService, services)
}

// pastOf is how callers connect past their proxies.
func pastOf(e snapshot.Escape) connection { return connection{plain: e.By, foreign: true, past: true} }

// answerEscaped answers for a Destination to which the callers' proxies do not see requests, or may not, and reports whether that is so.
// Without a Destination, it is what only the mesh knows.
func answerEscaped(q *query, out *Why, d *snapshot.DestinationPlan) bool {
	e := escapesTo(q.Index, q.workload, q.mesh, d, q.request.Port)
	switch {
	case e.By == "":
		return false
	case !e.Sure:
		out.Verdict, out.Reason = Unknown, e.By+"; what passes them by takes no route, and presents no identity"
	default:
		q.answerPast(out, d, pastOf(e))
		out.Notes = append(out.Notes, e.By+": no route and no setting applies, and the callers present no identity")
	}
	return true
}

// answerPast answers for requests that reach a Destination past the proxies of the callers.
func (q *query) answerPast(out *Why, d *snapshot.DestinationPlan, how connection) {
	past := Outcome{Destination: d.Ref, Host: out.Host, Port: q.request.Port, Cluster: q.clusterOf(d.Ref), service: serviceRef(d), past: true}
	ready := len(endpointsOf(d, nil))
	past.Endpoints, past.Hops = &ready, []Hop{{To: "a pod of " + d.Ref.Name, Cluster: d.Mesh.Cluster}}
	if past.Reason = untranslated(q, d, q.request.Port); past.Reason != "" {
		past.Verdict = Unknown
		out.Outcomes = divide([]Outcome{past}, whole)
		return
	}
	out.Outcomes = divide(q.decided(past, d, q.request.Port, how, nil), whole)
	out.NotEvaluated = append(out.NotEvaluated, "whether the network of the cluster lets them reach its pods past the mesh")
}

// toPastProxy is what becomes of calls to a port that pods take out of their proxies: callers do not know that.
func (g *podGroup) toPastProxy(how connection) judged {
	where := fmt.Sprintf("port %d of the pods passes their proxies by (excludeInboundPorts, includeInboundPorts or excludeInterfaces)", g.port)
	plain := how.plain != "" || g.plain != "" && !how.mutual() && !how.foreign
	if g.guard != nil && !how.mutual() && !how.foreign {
		tls, _ := g.guard.TLS(g.port)
		plain = plain || tls == snapshot.TLSNone || tls == snapshot.TLSUnmet || tls == snapshot.TLSUnused
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
