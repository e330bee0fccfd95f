package explain

import (
	"fmt"
	"slices"

	discoveryv1 "github.com/meshctl/meshctl/engine/api/discovery/v1"
	"github.com/meshctl/meshctl/engine/snapshot"
)

// answerVirtualDestination answers for a VirtualDestination.
func (q *query) answerVirtualDestination(out *Why, v *snapshot.VirtualDestinationPlan) {
	out.Protocol, out.Issues, out.Host = v.Protocol, q.issues.of(v.Ref), v.Hostname
	if q.request.Port == 0 {
		q.request.Port = v.Port
	}
	home, name := v.Home(q.mesh), v.Ref.Name
	if v.OfNamespace() {
		name = v.Ref.Identity()
	}
	switch {
	case !seesVirtual(q.workload, v):
		out.Verdict, out.Reason = Unreachable, fmt.Sprintf("the proxies of the callers do not know host %s: VirtualDestination %s is for callers in its own namespace alone", v.Hostname, shortName(v.Ref))
		return
	case q.request.Port != v.Port:
		out.Verdict, out.Reason = Unreachable, fmt.Sprintf("VirtualDestination %s has no port %d; it has %d", shortName(v.Ref), q.request.Port, v.Port)
		return
	case !v.Sees(q.mesh):
		out.Verdict, out.Reason = Unreachable, fmt.Sprintf("VirtualDestination %s is not for callers in mesh %s; see meshctl describe virtualdestination %s", shortName(v.Ref), q.mesh.Ref.Name, name)
		return
	}
	if answerEscaped(q, out, nil) {
		return
	}
	if reason := q.hostMissing(v.Ref, v.Hostname); reason != "" && !isGateway(q.workload) {
		out.Verdict, out.Reason = Unreachable, reason
		if _, contested := generatedSidecar(q); contested != "" {
			out.Verdict, out.Reason = Unknown, contested+"; by the generated one, "+reason
		}
		return
	}
	of := &snapshot.HostQuery{
		Host: v.Hostname, Mesh: q.mesh, Home: home, Generated: true, Port: v.Port, Addresses: snapshot.AddressList(v.Address),
		Traffic: trafficOf(nil, &discoveryv1.KubeServicePort{Port: v.Port, AppProtocol: v.Protocol}),
	}
	if by := takenAt(q, of); by != "" {
		out.Verdict, out.Reason = Unknown, by
		return
	}
	hidden := q.hiddenBy(v.Hostname, home)
	if by := definedByHand(q, place{host: v.Hostname, namespace: home, hidden: hidden != ""}); by != "" {
		out.Verdict, out.Reason = Unknown, by
		return
	}
	if hidden != "" {
		out.Verdict, out.Reason = Unreachable, hiddenText+hidden
		return
	}
	var route *snapshot.Route
	if isGateway(q.workload) {
		route = q.routeAtGateway(out, of)
	} else {
		route, _ = q.routeByHand(out, of, false)
	}
	if out.Verdict != "" {
		return
	}
	q.follow(out, route, func(q *query) []Outcome { return q.virtualOutcomes(v, "") })
}

// seesVirtual reports whether a VirtualDestination is for the callers: one of a registered cluster is for its own namespace there.
func seesVirtual(callers *discoveryv1.Workload, v *snapshot.VirtualDestinationPlan) bool {
	k := callers.Spec.Kubernetes
	return !v.OfNamespace() || k != nil && v.SeenIn(k.Controller.ClusterName, k.Controller.Namespace)
}

// virtualOutcomes are the services behind a VirtualDestination, in the order of failover.
func (q *query) virtualOutcomes(v *snapshot.VirtualDestinationPlan, subset string) []Outcome {
	var out []Outcome
	var with map[string]string
	for _, s := range v.Subsets {
		if s.Name == subset {
			with = s.Labels
		}
	}
	for _, view := range v.Views {
		if view.Mesh != q.mesh {
			continue
		}
		for i, priority := range view.Priorities {
			for _, target := range priority.Targets {
				d := q.destinations[target.Backing.Ref]
				if d == nil || d.Mesh == nil {
					continue
				}
				for _, outcome := range q.backingOutcomes(v, view, d, &target, subset, with) {
					outcome.Host, outcome.Port, outcome.Priority = v.Hostname, v.Port, i+1
					out = append(out, outcome)
				}
			}
		}
	}
	out = markIdle(out)
	for i := range out {
		o := &out[i]
		failsOver := slices.ContainsFunc(out, func(next Outcome) bool { return next.Priority > o.Priority })
		if failsOver && !o.Idle && o.Verdict == Unreachable && o.Endpoints != nil && *o.Endpoints > 0 {
			o.Verdict, o.Reason = Unknown, o.Reason+"; once outlier detection has excluded these pods, requests go to the next"
		}
	}
	return out
}

// backingOutcomes are where requests for a service behind a VirtualDestination end: its mesh need not
// federate the service itself.
func (q *query) backingOutcomes(v *snapshot.VirtualDestinationPlan, view *snapshot.VirtualView, d *snapshot.DestinationPlan, target *snapshot.VirtualTarget, subset string, with map[string]string) []Outcome {
	port, identity := target.Backing.Port.Port, q.identity
	// What its pods take, Istio looks up by the namespace of the generated object: callers of their own mesh know nothing of it, either.
	how := connection{foreign: true}
	how.setPlain(view.WithoutIdentity())
	how.byHand(q.Index, &snapshot.HostQuery{Host: v.Hostname, Mesh: q.mesh, Home: v.Home(q.mesh), Port: q.request.Port}, q.workload, subset)
	if how.plain != "" {
		identity = ""
	}
	ready := len(endpointsOf(d, with))
	out := Outcome{Destination: d.Ref, ServicePort: port, Cluster: q.clusterOf(d.Ref), Subset: subset, Endpoints: &ready, service: serviceRef(d)}
	pods := Hop{To: "a pod of " + d.Ref.Name, Cluster: d.Mesh.Cluster, Identity: identity}
	if len(target.Through) > 0 {
		out.Hops = append(out.Hops, Hop{To: "east-west gateway of " + d.Mesh.Cluster, Cluster: d.Mesh.Cluster, Identity: identity, Addresses: addressesOf(target.Through)})
	}
	out.Hops = append(out.Hops, pods)
	if reason := q.trustMissing(d); reason != "" {
		out.Verdict, out.Reason = Unreachable, reason
		return []Outcome{out}
	}
	if by := plainByPeers(q, d, how, with); by != "" {
		out.Verdict, out.Reason = Unreachable, by
		return []Outcome{out}
	}
	decide := func() []Outcome { return q.decided(out, d, port, how, with) }
	switch {
	case len(target.Through) == 0:
		return decide()
	case how.refusedByGateways(&out):
		return []Outcome{out}
	}
	return q.throughGateways(out, d, target.Through, decide)
}
