package explain

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/meshctl/meshctl/engine/access"
	networkingv1 "github.com/meshctl/meshctl/engine/api/networking/v1"
	"github.com/meshctl/meshctl/engine/snapshot"
)

// outside is what users wrote in clusters, beside policies.
type outside struct {
	clusters map[string]*snapshot.Cluster
	// byHand is what there is for each mesh in its cluster, if that is anything.
	byHand map[*snapshot.MeshPlan]snapshot.ByHand
	// restricted are the Destinations of a namespace on which AccessPolicies are in force; see othersInFront.
	restricted map[podNamespace][]*snapshot.DestinationPlan
}

// newOutside reads what users wrote for the meshes of a State.
func newOutside(state *snapshot.State, clusters map[string]*snapshot.Cluster) *outside {
	o := &outside{clusters: clusters, byHand: map[*snapshot.MeshPlan]snapshot.ByHand{}, restricted: map[podNamespace][]*snapshot.DestinationPlan{}}
	for _, m := range state.Plan.Meshes {
		if c := clusters[m.Cluster]; c != nil && m.Dialect.Inspect != nil {
			if hand := m.Dialect.Inspect(c, state.Input.Management.Plane()); !hand.Empty() {
				o.byHand[m] = hand
			}
		}
	}
	return o
}

// gatewaysRefuse sets the verdict if the gateways of a mesh do not pass on connections that they do not read, and that present
// nobody to them, and reports whether it did.
func (o *outside) gatewaysRefuse(out *Outcome, mesh *snapshot.MeshPlan, gateways []snapshot.GatewayPlan) bool {
	hand := o.byHand[mesh]
	if hand == nil || mesh.Limited {
		return false
	}
	passing := 0
	for i := range gateways {
		switch why := o.gatewayRefuses(hand, mesh, &gateways[i]); {
		case why == "":
			passing++
		case out.Reason == "":
			out.Reason = why
		}
	}
	switch {
	case out.Reason == "":
		return false
	case passing > 0:
		out.Verdict, out.Reason = Unknown, out.Reason+"; other gateways pass connections on"
	default:
		out.Verdict = Unreachable
	}
	return true
}

// gatewayRefuses says why a gateway refuses such connections; empty if it does not.
func (o *outside) gatewayRefuses(hand snapshot.ByHand, mesh *snapshot.MeshPlan, gw *snapshot.GatewayPlan) string {
	of, none := &snapshot.PodQuery{Mesh: mesh, Namespace: gw.Service.Namespace}, snapshot.Ref{}
	pods := podsOf(o.clusters[mesh.Cluster], gw.Service.Namespace, gw.Selector)
	for _, address := range slices.Sorted(maps.Keys(pods)) {
		of.Pods = append(of.Pods, pods[address])
	}
	isOpen := mesh.DenyByDefault != nil && mesh.IsOpenGateway(gw.Service)
	for _, g := range hand.Guards(of) {
		switch r := g.Decide(&snapshot.Call{PodPort: gw.ContainerPort}); {
		case r.Denied != none:
			return byHandName(r.Denied) + " denies connections to east-west gateway " + shortName(gw.Service)
		case r.Closed != none && r.Allowed == none && !isOpen:
			return byHandName(r.Closed) + " lets east-west gateway " + shortName(gw.Service) + " take only what a policy allows, and none allows connections to it"
		}
	}
	return ""
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

// connection is how callers connect to pods.
type connection struct {
	// plain is the TLS mode with which they present no identity, and mutual one with which they insist on it; nil where no
	// policy sets one.
	plain, mutual *snapshot.WithOrigin[networkingv1.TLSMode]
	// foreign: they are of another mesh, and know nothing of what the pods take.
	foreign bool
}

// connectionTo is how callers of a mesh connect to a Destination.
func connectionTo(d *snapshot.DestinationPlan, from *snapshot.MeshPlan) connection {
	out := connection{plain: d.WithoutIdentity(from), foreign: d.Mesh.Ref != from.Ref}
	for _, v := range d.Views {
		if v.Mesh == from && out.plain == nil {
			out.mutual = v.TLS
		}
	}
	return out
}

// toBare is what becomes of calls to pods that run no proxy of the mesh. Proxies of their own mesh send plain text to them unless
// they are told to insist on mutual TLS (Istio, xds/endpoints, mtlsChecker).
func (c *connection) toBare() judged {
	switch {
	case c.mutual != nil:
		return judged{verdict: Unreachable, byHand: true, reason: fmt.Sprintf("%s has the callers insist on mutual TLS, and these endpoints have no proxy of the mesh", kindAndName(c.mutual.Origin.Ref))}
	case c.foreign:
		return judged{verdict: Unreachable, byHand: true, reason: "the callers come with mutual TLS, and these endpoints have no proxy of the mesh"}
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
	guard := group.guard
	switch call.PodPort = group.port; {
	case group.machines && how.foreign:
		return judged{verdict: Unreachable, byHand: true, reason: "callers in other clusters do not get the addresses of WorkloadEntries, which whoever writes them chooses"}
	case group.bare:
		return how.toBare()
	case group.withoutIdentity && how.mutual == nil:
		return group.toMachines(d, from, &call)
	case how.plain != nil:
		call.Caller = nil
	}
	unidentified := ""
	if guard != nil {
		switch tls, by := guard.TLS(call.PodPort); {
		case tls == snapshot.TLSNone && how.plain == nil && (how.foreign && !d.Mesh.Limited || how.mutual != nil):
			return judged{verdict: Unreachable, byHand: true, reason: fmt.Sprintf("the callers come with mutual TLS, which %s turns off for port %d of the pods", byHandName(by), call.PodPort)}
		case tls == snapshot.TLSNone && call.Caller != nil:
			call.Caller = nil
			unidentified = fmt.Sprintf("the callers present no identity, as %s turns mutual TLS off for port %d of the pods", byHandName(by), call.PodPort)
		case tls == snapshot.TLSMutual && how.plain != nil:
			return judged{verdict: Unreachable, byHand: true, reason: fmt.Sprintf("%s takes only mutual TLS, and %s sets TLS mode %s", byHandName(by), kindAndName(how.plain.Origin.Ref), how.plain.Value)}
		}
	}
	out := judged{ours: group.allows(d, from, &call)}
	if guard == nil {
		out.verdict = verdictOf(out.ours)
		return out
	}
	if relayed := relayedAs(d, from); relayed != nil && call.Caller != nil {
		call.Caller = relayed
	}
	return out.with(d, guard.Decide(&call), unidentified)
}

func verdictOf(ours access.Decision) Verdict {
	if ours.Open != snapshot.OpenNot || len(ours.By) > 0 {
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
			domain, rest, _ := strings.Cut(strings.TrimPrefix(text, "spiffe://"), "/ns/")
			if namespace, account, ok := strings.Cut(rest, "/sa/"); ok {
				return &snapshot.Identity{TrustDomain: domain, Namespace: namespace, ServiceAccount: account}
			}
		}
	}
	return nil
}

// hiddenBy says because of what users wrote the callers' proxies do not know a host of a namespace; empty if they do.
func (q *query) hiddenBy(host, home string) string {
	k := q.workload.Spec.Kubernetes
	if k == nil || q.outside.byHand[q.mesh] == nil || q.egress(snapshot.RefOf(snapshot.Workload, q.workload)) != nil {
		return "" // a generated object says what they know
	}
	of := &snapshot.HostQuery{Host: host, Mesh: q.mesh, Home: home, Port: q.request.Port}
	if by, hides := q.outside.byHand[q.mesh].Hides(of, &snapshot.PodQuery{Mesh: q.mesh, Namespace: k.Controller.Namespace, Pods: []map[string]string{k.PodLabels}}); hides {
		return byHandName(by.Ref) + " " + by.What + "; " + by.Hint
	}
	return ""
}

// hostHidden says that the callers' proxies do not know the host of a Destination; empty if they do. A service of their own cluster
// they may call nevertheless, past the mesh: that is for its settings to say, which are not read.
func (q *query) hostHidden(d *snapshot.DestinationPlan, host string) (Verdict, string) {
	home, isHere := q.mesh.Namespace, q.mesh.Ref == d.Mesh.Ref
	if k := d.Destination.Spec.KubeService; isHere && k != nil {
		home = k.Ref.Namespace
	}
	by := q.hiddenBy(host, home)
	if from, k := q.workload.Spec.Kubernetes, d.Destination.Spec.KubeService; by == "" && isHere && from != nil && k != nil && q.mesh.Dialect.Unknown != nil {
		by = q.mesh.Dialect.Unknown(q.mesh, k, from.Controller.Namespace)
	}
	switch {
	case by == "":
		return "", ""
	case isHere:
		return Unknown, "the proxies of the callers do not know it: " + by + ". W" + pastProxies[1:]
	}
	return Unreachable, "the proxies of the callers do not know it: " + by
}

// pastProxies is what is known of requests to a name that the proxies of callers do not know.
const pastProxies = "whether requests reach it past them is for outboundTrafficPolicy of the mesh, which is not read; such requests take no route and present no identity"

// notLookedAt says which objects that users write in clusters were not read, and may decide otherwise; empty if all were.
func (q *query) notLookedAt(clusters []string) string {
	if len(q.mesh.Dialect.Reads) == 0 {
		return ""
	}
	if q.unread {
		return "what users wrote in the clusters, which may decide otherwise: ask with --clusters"
	}
	var texts []string
	for _, name := range clusters {
		c := q.clusters[name]
		if c == nil {
			continue
		}
		denied := slices.DeleteFunc(slices.Clone(c.Denied), func(k snapshot.Kind) bool { return q.mesh.Dialect.Reads[k] == nil })
		if len(denied) > 0 {
			texts = append(texts, kindNames(denied)+" of "+name)
		}
	}
	if len(texts) == 0 {
		return ""
	}
	return strings.Join(texts, ", ") + ", which meshctl may not read, and which may decide otherwise: register the cluster again"
}

func kindNames(kinds []snapshot.Kind) string {
	names := make([]string, len(kinds))
	for i, k := range kinds {
		names[i] = k.String()
	}
	return strings.Join(names, ", ")
}
