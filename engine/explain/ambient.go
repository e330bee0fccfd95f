package explain

import (
	"cmp"
	"slices"
	"strings"

	discoveryv1 "github.com/meshctl/meshctl/engine/api/discovery/v1"
	"github.com/meshctl/meshctl/engine/snapshot"
)

// This file answers for pods in ambient mode. What their node's proxy (ztunnel) and waypoints do is followed only as far as it is certain
// that nobody is let in; all else is not known.

// notFollowed is what is said of pods in ambient mode.
const notFollowed = "ztunnel and waypoints decide about calls to them, which is not followed"

// modeOf is how the pods of a workload take part in their mesh.
func modeOf(o *discoveryv1.Workload) discoveryv1.DataPlaneMode {
	if o.Spec.Kubernetes == nil {
		return discoveryv1.ModeOwnProxy
	}
	return o.Spec.Kubernetes.DataPlaneMode
}

// modeText is a mode in words; empty for pods with sidecars, and gateways.
func modeText(mode discoveryv1.DataPlaneMode) string {
	switch mode {
	case discoveryv1.ModeAmbient:
		return "ambient"
	case discoveryv1.ModePending:
		return "ambient, pending: labels ask for it, and no pod is in it yet"
	case discoveryv1.ModeWaypoint:
		return "waypoint"
	case discoveryv1.ModeHBONEGateway:
		return "east-west gateway of ambient mode"
	}
	return ""
}

// dataPlanes says which data planes a mesh has; empty if only sidecars.
func dataPlanes(ambient *discoveryv1.IstioAmbient) string {
	if ambient == nil {
		return ""
	}
	text := "sidecars, and ambient mode (" + ambient.Evidence + ")"
	if ambient.MultiNetwork {
		text += ", of several networks (AMBIENT_ENABLE_MULTI_NETWORK)"
	}
	return text
}

// modeWord is a mode in a word or two.
func modeWord(mode discoveryv1.DataPlaneMode) string {
	word, _, _ := strings.Cut(modeText(mode), ":")
	return strings.TrimSuffix(word, " of ambient mode")
}

// ambientMode is that of endpoints of a service that have to do with ambient mode; empty for others.
func ambientMode(k *discoveryv1.KubeService, part *discoveryv1.EndpointSubset) discoveryv1.DataPlaneMode {
	switch {
	case k.Ambient == nil || !part.Ambient && (k.Ambient.Mode.IsAmbient() || k.Ambient.Partly):
		return discoveryv1.ModeOwnProxy
	case part.Ambient && !k.Ambient.Mode.IsAmbient():
		return discoveryv1.ModePending
	}
	return k.Ambient.Mode
}

// ambientText says how far a Destination is in ambient mode, and what that means for answers; empty if it is not.
func ambientText(d *snapshot.DestinationPlan) string {
	k := d.Destination.Spec.KubeService
	text := snapshot.AmbientText(k)
	if text == "" {
		return ""
	}
	if waypoint := snapshot.WaypointText(k); waypoint != "" {
		text += ", behind waypoint " + waypoint
	}
	return text + ": " + notFollowed
}

// countAccess counts the AccessPolicies that select a workload as a caller.
func countAccess(x *Index, ref snapshot.Ref, o *discoveryv1.Workload) (n int) {
	for _, p := range x.state.Plan.Policies {
		if p.Ref.Kind == snapshot.AccessPolicy && x.selectsCaller(p, ref, o) {
			n++
		}
	}
	return n
}

// canBeCalled reports whether something can be called by a name.
func canBeCalled(x *Index, to snapshot.Ref) bool {
	return x.destinations[to] != nil || x.virtualDestinations[to] != nil
}

// toAmbient is what becomes of a call to pods of a Destination in ambient mode. An AuthorizationPolicy with a selector, or for a
// namespace or the mesh, holds for them, too. Its ALLOW rules match fewer calls there than at sidecars, and its DENY rules more (Istio,
// ambient.handleRule); but whether callers present an identity is not known, and of what comes through a waypoint, the pods see that one's.
func (g *podGroup) toAmbient(d *snapshot.DestinationPlan, from *snapshot.MeshPlan, how connection, call snapshot.Call) judged {
	unknown := judged{verdict: Unknown, byHand: true, reason: d.Ref.Name + ": " + ambientText(d)}
	behind := snapshot.HasWaypoint(d.Destination.Spec.KubeService)
	if g.ambient != discoveryv1.ModeAmbient || how.by != bySidecar && (behind || g.behindWaypoint(d)) {
		return unknown
	}
	if g.guard == nil && len(d.Access)+len(g.others) == 0 && d.Open() == snapshot.OpenNot && d.Mesh.DenyByDefault != nil {
		return judged{verdict: Refused, byHand: true, ours: g.allows(d, from, &call), reason: snapshot.AmbientText(d.Destination.Spec.KubeService) + ", where " +
			kindAndName(d.Mesh.DenyByDefault.Ref) + " denies access by default, too, and no AccessPolicy opens them: write an AuthorizationPolicy there"}
	}
	if behind {
		return unknown
	}
	var first judged
	for _, caller := range []*snapshot.Identity{call.Caller, nil} {
		call.Caller = caller
		one := judged{ours: g.allows(d, from, &call)}
		one.verdict = verdictOf(one.ours)
		if g.guard != nil {
			one = one.with(d, g.guard.Decide(&call), "")
		}
		if one.verdict != Refused {
			return unknown
		}
		if first.verdict == "" {
			first = one
		}
	}
	first.byHand = true
	first.reason = snapshot.AmbientText(d.Destination.Spec.KubeService) + ", where ztunnel holds to AuthorizationPolicies: " +
		cmp.Or(first.reason, "those that are written for AccessPolicies do not allow it")
	return first
}

// behindWaypoint reports whether what ztunnel sends to pods of a Destination may come through a waypoint, which it may be that nothing
// shows: one of class istio-remote has no pods in the cluster. The pods then see the identity of the waypoint.
func (g *podGroup) behindWaypoint(d *snapshot.DestinationPlan) bool {
	k := d.Destination.Spec.KubeService
	return g.waypoint || k != nil && k.UseWaypoint != ""
}

// throughWaypoint says that gateways send what callers ask a Destination for through its waypoint, whatever its pods are; empty if they do
// not (Istio, EndpointBuilder.findServiceWaypoint). Callers in other clusters come through a gateway, too.
func throughWaypoint(d *snapshot.DestinationPlan, from *snapshot.MeshPlan, how connection) string {
	k := d.Destination.Spec.KubeService
	if k == nil || k.UseWaypoint == "" || !k.IngressUseWaypoint || k.Headless || how.past {
		return ""
	}
	if how.foreign && d.ThroughGateways(from) || !how.foreign && how.by == byGateway {
		return "gateways send requests for " + d.Ref.Name + " through waypoint " + k.UseWaypoint + ", which decides about them and is not followed"
	}
	return ""
}

// ofAmbient is what becomes of a call of callers in ambient mode to pods that are not. They present an identity only to those that take
// HBONE, which is not known of them.
func (g *podGroup) ofAmbient(d *snapshot.DestinationPlan, from *snapshot.MeshPlan, call snapshot.Call) judged {
	const unknown = "the callers are in ambient mode: ztunnel sends their requests, which is not followed; they present an identity only to pods that take HBONE"
	if g.bare || g.behindWaypoint(d) {
		return judged{verdict: Unknown, byHand: true, reason: unknown}
	}
	var first judged
	for _, caller := range []*snapshot.Identity{call.Caller, nil} {
		call.Caller = caller
		one := judged{ours: g.allows(d, from, &call)}
		one.verdict = verdictOf(one.ours)
		if g.guard != nil {
			one = one.with(d, g.guard.Decide(&call), "")
		}
		if one.verdict != Refused {
			return judged{verdict: Unknown, byHand: true, reason: unknown}
		}
		if first.verdict == "" {
			first = one
		}
	}
	return first
}

// answerFromAmbient answers for callers in ambient mode. Their proxy is ztunnel: no route and no setting of theirs is that of a policy,
// and no gateway of another cluster takes what it sends.
func (q *query) answerFromAmbient(out *Why, d *snapshot.DestinationPlan) {
	out.NotEvaluated = append(out.NotEvaluated, "ztunnel, which is the proxy of the callers, and waypoints: TrafficPolicies, VirtualServices and DestinationRules have no effect on their requests")
	if d.ThroughGateways(q.mesh) {
		out.Verdict, out.Reason = Unreachable, "the callers are in ambient mode: ztunnel sends plain connections to the gateways of "+d.Mesh.Cluster+
			", which pass on only mutual TLS with a name (SNI); give the callers sidecars"
		return
	}
	if defined := definedByHand(q, placeOf(q, d)); q.mesh.Ref == d.Mesh.Ref && defined != "" {
		out.Verdict, out.Reason = Unknown, defined
		return
	}
	one := Outcome{Destination: d.Ref, Host: out.Host, Port: q.request.Port, Cluster: q.clusterOf(d.Ref), service: serviceRef(d)}
	ready := len(endpointsOf(d, nil))
	one.Endpoints, one.Hops = &ready, []Hop{{To: "a pod of " + d.Ref.Name + ", through ztunnel", Cluster: d.Mesh.Cluster}}
	out.Outcomes = divide(q.decided(one, d, q.request.Port, connection{by: byZtunnel, foreign: d.Mesh.Ref != q.mesh.Ref, past: true}, nil), whole)
}

// ambientCallers says that callers of a mesh in ambient mode do not use the routes of a Destination; empty if there are none.
func ambientCallers(x *Index, m *snapshot.MeshPlan) string {
	var namespaces []string
	for _, o := range x.workloads {
		if modeOf(o).IsAmbient() && x.meshOf(o) == m {
			namespaces = append(namespaces, o.Spec.Kubernetes.Controller.Namespace)
		}
	}
	if len(namespaces) == 0 {
		return ""
	}
	slices.Sort(namespaces)
	return "workloads of cluster " + m.Cluster + " in ambient mode (" + snapshot.NamespacesText(namespaces) + "): their requests take no route and no setting of policies, and what becomes of them is not followed"
}
