package explain

import (
	"fmt"
	"slices"
	"strings"

	"github.com/meshctl/meshctl/engine/access"
	discoveryv1 "github.com/meshctl/meshctl/engine/api/discovery/v1"
	networkingv1 "github.com/meshctl/meshctl/engine/api/networking/v1"
	"github.com/meshctl/meshctl/engine/netpolicy"
	"github.com/meshctl/meshctl/engine/snapshot"
)

// outside is what users wrote in clusters, beside policies.
type outside struct {
	clusters map[string]*snapshot.Cluster
	// byHand is what there is for each mesh in its cluster, if that is anything.
	byHand map[*snapshot.MeshPlan]snapshot.ByHand
	// pods are those of the clusters of these meshes.
	pods map[string]podIndex
	// hosts are those of the objects that are generated there.
	hosts generatedHosts
	// connections are the hosts of which a generated object says how callers connect to them.
	connections map[clusterHost]bool
	// restricted are the Destinations of a namespace on which AccessPolicies are in force; see othersInFront.
	restricted map[podNamespace][]*snapshot.DestinationPlan
	// denying are those on which some are in force that deny; see denyingBeside.
	denying map[podNamespace][]*snapshot.DestinationPlan
	// network is what NetworkPolicies let through.
	network *netpolicy.Network
}

// newOutside reads what users wrote for the meshes of a State.
func newOutside(state *snapshot.State, clusters map[string]*snapshot.Cluster) *outside {
	o := &outside{clusters: clusters, byHand: map[*snapshot.MeshPlan]snapshot.ByHand{}, pods: map[string]podIndex{}, restricted: map[podNamespace][]*snapshot.DestinationPlan{},
		denying: map[podNamespace][]*snapshot.DestinationPlan{}, network: netpolicy.NewNetwork(state.Input.Clusters)}
	for _, m := range state.Plan.Meshes {
		if c := clusters[m.Cluster]; c != nil && m.Dialect.Inspect != nil {
			if hand := m.Dialect.Inspect(c, state.Input.Management.Plane()); !hand.Empty() {
				o.byHand[m] = hand
				if o.pods[m.Cluster] == nil {
					o.pods[m.Cluster] = newPodIndex(c)
				}
			}
		}
	}
	if len(o.byHand) > 0 {
		o.connections = generatedConnections(state.Output)
		o.hosts = newGeneratedHosts(state.Output, func(cluster string) bool { return o.pods[cluster] != nil })
	}
	return o
}

// access are users' objects that decide who may call a Destination, but for those that only ask for identities.
func (o *outside) access(d *snapshot.DestinationPlan) []snapshot.Intersection {
	k := d.Destination.Spec.KubeService
	if d.Mesh == nil || k == nil || o.byHand[d.Mesh] == nil {
		return nil
	}
	return o.byHand[d.Mesh].Access(k, d.Mesh)
}

// alsoRouted says what users wrote that routes requests for a Destination in its own mesh, too.
func (o *outside) alsoRouted(d *snapshot.DestinationPlan) string {
	k, hand := d.Destination.Spec.KubeService, o.byHand[d.Mesh]
	if k == nil || hand == nil {
		return ""
	}
	var names []string
	for _, x := range hand.Routes(&snapshot.HostQuery{Host: d.LocalFQDN, Mesh: d.Mesh, Home: k.Ref.Namespace}) {
		names = append(names, x.Ref.String())
	}
	if len(names) == 0 {
		return ""
	}
	return "; " + firstOf(names) + ", which users wrote, also " + verb(len(names), "routes", "route") + " them: ask meshctl why"
}

// sender is what sends the requests of callers.
type sender uint8

const (
	// bySidecar: their own proxies do, which go past waypoints.
	bySidecar sender = iota
	// byGateway: what gateways send may go through waypoints, which istiod may let in by itself (PILOT_AUTO_ALLOW_WAYPOINT_POLICY).
	byGateway
	// byZtunnel: the callers are in ambient mode. The same holds for waypoints.
	byZtunnel
)

// connection is how callers connect to pods.
type connection struct {
	// plain says in a clause why they present no identity; empty if they do. policy is the one that sets it; nil if none does.
	plain  string
	policy *snapshot.WithOrigin[networkingv1.TLSMode]
	// mutualBy says in a clause because of what they insist on mutual TLS; empty if they do not.
	mutualBy string
	// other says in a clause why they do TLS that is not that of their mesh, and unknown by what it is decided what they do; instead says
	// that the generated object about it is not used. Each is empty if that is not so.
	other, unknown, instead string
	// named says what users set for them that may keep some requests from pods, and is not evaluated; empty if nothing.
	named string
	// foreign: they are of another mesh, and know nothing of what the pods take.
	foreign bool
	// past: they connect past their proxies, to the addresses that the cluster gives them. resolved: their proxies connect to addresses
	// that they have resolved, and know nothing of what single pods take.
	past, resolved bool
	// by is what sends their requests.
	by sender
}

// remote: they get the addresses of no endpoints but those that other clusters are given.
func (c *connection) remote() bool { return c.foreign && !c.past }

// connectionTo is how callers of a mesh connect to a Destination.
func connectionTo(d *snapshot.DestinationPlan, from *snapshot.MeshPlan) connection {
	out := connection{foreign: d.Mesh.Ref != from.Ref}
	out.setPlain(d.WithoutIdentity(from))
	for _, v := range d.Views {
		if v.Mesh == from && out.plain == "" {
			out.setMutual(v.TLS)
		}
	}
	if !out.mutual() && out.plain == "" {
		out.plain = from.PlainBy
	}
	// Of pods that callers resolve, the mesh looks at all: they come with mutual TLS only where each has a proxy, and do not heed what
	// single pods take (Istio, PushContext.BestEffortInferServiceMTLSMode).
	if k := d.Destination.Spec.KubeService; k != nil && k.Headless && !out.foreign {
		bare := slices.ContainsFunc(k.EndpointSubsets, func(part discoveryv1.EndpointSubset) bool { return part.NoProxy && len(part.Endpoints) > 0 })
		if bare && !out.mutual() && out.plain == "" {
			out.plain = d.Ref.Name + " is headless, and some of its endpoints have no proxy of the mesh"
		}
		out.resolved = true
	}
	return out
}

// mutual: they insist on mutual TLS.
func (c *connection) mutual() bool { return c.mutualBy != "" }

// setMutual takes the TLS mode of a policy with which callers insist on mutual TLS, if there is one.
func (c *connection) setMutual(policy *snapshot.WithOrigin[networkingv1.TLSMode]) {
	if policy != nil {
		c.mutualBy = fmt.Sprintf("%s sets TLS mode %s", kindAndName(policy.Origin.Ref), policy.Value)
	}
}

// comeWithMutual says that the callers come with mutual TLS, and because of what, if that is not usual.
func (c *connection) comeWithMutual() string {
	return "the callers come with mutual TLS" + prefixed(", as ", c.mutualBy)
}

// setPlain takes the TLS mode of a policy with which callers present no identity, if there is one.
func (c *connection) setPlain(policy *snapshot.WithOrigin[networkingv1.TLSMode]) {
	if policy != nil {
		c.policy, c.plain = policy, fmt.Sprintf("%s sets TLS mode %s", kindAndName(policy.Origin.Ref), policy.Value)
	}
}

// toBare is what becomes of calls to pods that run no proxy of the mesh. Proxies of their own mesh send plain text to them unless
// they are told to insist on mutual TLS (Istio, xds/endpoints, mtlsChecker).
func (c *connection) toBare() judged {
	switch {
	case c.unknown != "":
		return judged{verdict: Unknown, byHand: true, reason: c.unknown}
	case c.other != "":
		return judged{verdict: Unknown, byHand: true, reason: c.other + ": whether these endpoints, which have no proxy of the mesh, take that is not known"}
	}
	if c.mutual() || c.remote() {
		return judged{verdict: Unreachable, byHand: true, reason: c.comeWithMutual() + ", and these endpoints have no proxy of the mesh"}
	}
	return judged{verdict: Allowed, byHand: true, reason: "these endpoints have no proxy of the mesh, so that no policy decides who may call them"}
}

// toMachines is what becomes of calls to WorkloadEntries that name no service account: callers send plain text to them (Istio,
// serviceentry.getTLSModeFromWorkloadEntry).
func (g *podGroup) toMachines(d *snapshot.DestinationPlan, from *snapshot.MeshPlan, call *snapshot.Call) judged {
	call.Caller = nil
	out := judged{ours: g.allows(d, from, call)}
	if g.guard == nil && verdictOf(out.ours) == Allowed {
		out.verdict = Allowed
		return out
	}
	out.verdict, out.byHand = Unknown, true
	out.reason = "the WorkloadEntries of these endpoints name no service account, so that callers present no identity; whether a proxy there refuses them is not known"
	return out
}

// judged is what AccessPolicies and users' objects together decide about a call to a group of pods.
type judged struct {
	verdict Verdict
	reason  string
	// ours is the decision of AccessPolicies, which is all there is if no guard decides.
	ours access.Decision
	// byHand: what users wrote decides, whatever AccessPolicies say.
	byHand bool
}

// judge decides about a call to a group of pods.
func judge(d *snapshot.DestinationPlan, from *snapshot.MeshPlan, how connection, call snapshot.Call, group *podGroup) judged {
	guard, unidentified := group.guard, ""
	if text := throughWaypoint(d, from, how); text != "" {
		return judged{verdict: Unknown, byHand: true, reason: text}
	}
	switch call.PodPort = group.port; {
	case group.ambient != "" && how.remote():
		return judged{verdict: Unreachable, byHand: true, reason: "the callers come with mutual TLS, which pods in ambient mode do not take"}
	case group.ambient != "":
		return group.toAmbient(d, from, how, call)
	case how.by == byZtunnel:
		return group.ofAmbient(d, from, call)
	case group.machines && how.remote():
		return judged{verdict: Unreachable, byHand: true, reason: "callers in other clusters do not get the addresses of WorkloadEntries, which whoever writes them chooses"}
	case group.bare:
		return how.toBare()
	case group.pastProxy != "":
		return group.toPastProxy(how)
	case group.plain != "" && !how.foreign && !how.mutual() && how.plain == "" && how.other == "" && how.unknown == "":
		how.plain, unidentified = group.plain, "the callers present no identity, as "+group.plain
		call.Caller = nil
	case group.withoutIdentity && !how.mutual():
		return group.toMachines(d, from, &call)
	case how.plain != "":
		call.Caller = nil
	}
	if how.unknown != "" {
		return judged{verdict: Unknown, byHand: true, reason: how.unknown}
	}
	if how.other != "" {
		if guard != nil {
			if tls, by := guard.TLS(call.PodPort); tls == snapshot.TLSMutual {
				return judged{verdict: Unreachable, byHand: true, reason: byHandName(by) + " takes only mutual TLS of the mesh, and " + how.other}
			}
		}
		return judged{verdict: Unknown, byHand: true, reason: how.other + ": whether the pods take that is not known"}
	}
	if guard != nil {
		tls, by := guard.TLS(call.PodPort)
		if tls == snapshot.TLSUnused && (how.foreign || how.mutual()) {
			tls = snapshot.TLSAny
		}
		off := tls == snapshot.TLSNone || tls == snapshot.TLSUnused
		switch {
		case tls == snapshot.TLSNone && how.plain == "" && (how.foreign && !d.Mesh.Limited || how.mutual()):
			return judged{verdict: Unreachable, byHand: true, reason: fmt.Sprintf("%s, which %s turns off for port %d of the pods", how.comeWithMutual(), byHandName(by), call.PodPort)}
		case off && how.resolved && how.plain == "":
			return judged{verdict: Unknown, byHand: true, reason: fmt.Sprintf("%s is headless, and %s turns mutual TLS off for port %d of its pods: whether the callers come without is not known", d.Ref.Name, byHandName(by), call.PodPort)}
		case off && call.Caller != nil:
			call.Caller = nil
			unidentified = fmt.Sprintf("the callers present no identity, as %s turns mutual TLS off for port %d of the pods", byHandName(by), call.PodPort)
		case tls == snapshot.TLSUnmet && !how.mutual() && !how.foreign:
			return judged{verdict: Unreachable, byHand: true, reason: byHandName(by) + " takes only mutual TLS, and callers come without, as another one turns it off for all pods of the namespace or the mesh: turn it on there, or set TLS mode ISTIO_MUTUAL for the service"}
		case (tls == snapshot.TLSMutual || tls == snapshot.TLSUnmet) && how.plain != "":
			return judged{verdict: Unreachable, byHand: true, reason: byHandName(by) + " takes only mutual TLS, and " + how.plain}
		}
	}
	out := judged{ours: group.allows(d, from, &call)}
	if guard == nil {
		if out.verdict = verdictOf(out.ours); out.verdict == Refused && unidentified != "" && len(out.ours.Denied) == 0 {
			out.byHand, out.reason = true, unidentified
		}
		return out
	}
	if relayed := relayedAs(d, from); relayed != nil && call.Caller != nil {
		call.Caller = relayed
	}
	return out.with(d, guard.Decide(&call), unidentified)
}

func verdictOf(ours access.Decision) Verdict {
	if len(ours.Denied) == 0 && (ours.Open != snapshot.OpenNot || len(ours.By) > 0) {
		return Allowed
	}
	return Refused
}

// with adds what users' objects decide: what denies does so whatever else allows, and of what allows one is enough
// (istio.io: Authorization Policy).
func (j judged) with(d *snapshot.DestinationPlan, ruling snapshot.Ruling, unidentified string) judged {
	none := snapshot.Ref{}
	// Where nothing was written to let calls in, what closes the pods does so.
	unwritten := j.ours.Open == snapshot.OpenByDefault || j.ours.Open == snapshot.OpenAsGateway && d.Mesh.DenyByDefault == nil
	ours := verdictOf(j.ours) == Allowed && (!unwritten || ruling.Closed == none)
	j.byHand = true
	switch {
	case len(j.ours.Denied) > 0:
		j.verdict, j.byHand = Refused, false
	case ruling.Denied != none:
		j.verdict, j.reason = Refused, byHandName(ruling.Denied)+" denies it"
	case !ours && ruling.Allowed == none && len(ruling.MayAllow) > 0:
		j.verdict, j.reason = Unknown, "nothing else allows it, and "+whatText(ruling.MayAllow)
	case !ours && ruling.Allowed == none && verdictOf(j.ours) == Refused:
		j.verdict, j.byHand, j.reason = Refused, unidentified != "", unidentified
	case !ours && ruling.Allowed == none:
		j.verdict, j.reason = Refused, byHandName(ruling.Closed)+" lets in only what a policy allows, and none allows it"
	case len(ruling.MayDeny) > 0:
		j.verdict, j.reason = Unknown, whatText(ruling.MayDeny)
	case !ours:
		j.verdict, j.reason = Allowed, byHandName(ruling.Allowed)+" allows it"
	default:
		j.verdict, j.byHand = Allowed, false
	}
	return j
}

// byHandName names an object that users wrote.
func byHandName(ref snapshot.Ref) string { return "the hand-written " + ref.String() }

// whatText is what decides by something that is not known.
func whatText(list []snapshot.Intersection) string {
	texts := make([]string, len(list))
	for i, x := range list {
		texts[i] = byHandName(x.Ref) + " " + x.What
	}
	return firstOf(texts)
}

// relayedAs is whom the pods of a Limited mesh see if callers of another mesh call: their own gateway. Nil if they see the
// callers themselves.
func relayedAs(d *snapshot.DestinationPlan, from *snapshot.MeshPlan) *snapshot.Identity {
	if d.Mesh.Ref == from.Ref || !d.Mesh.Limited {
		return nil
	}
	for _, gw := range d.Mesh.Gateways {
		for _, text := range gw.Identities {
			if id := identityOf(text); id != nil {
				return id
			}
		}
	}
	return nil
}

func kindNames(kinds []snapshot.Kind) string {
	names := make([]string, len(kinds))
	for i, k := range kinds {
		names[i] = k.String()
	}
	return strings.Join(names, ", ")
}
