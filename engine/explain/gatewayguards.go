package explain

import (
	"cmp"
	"strings"

	"github.com/meshctl/meshctl/engine/snapshot"
)

// gatewayLeg is a connection to the east-west gateways of a mesh.
type gatewayLeg struct {
	mesh     *snapshot.MeshPlan
	gateways []snapshot.GatewayPlan
	// caller is whom it presents; nil if it presents nobody.
	caller *snapshot.Identity
}

// throughGateways are an outcome behind gateways: one if what users wrote has these refuse the connections to a Destination, and else
// what the pods decide, which is not known to be allowed if it is not known of the gateways. Gateways of a mesh with limited trust end
// the TLS sessions, and see who connects: the callers to those of their own mesh, and these to the others. Other gateways read no
// connection, and no policy holds there (Istio, builtAutoPassthroughFilterChains).
func (q *query) throughGateways(out Outcome, d *snapshot.DestinationPlan, gateways []snapshot.GatewayPlan, decide func() []Outcome) []Outcome {
	f := d.Federation
	down := gatewaysDown(q.Index, gateways)
	if f != nil && f.Limited {
		down = cmp.Or(gatewaysDown(q.Index, q.mesh.Gateways), down)
	}
	if down != "" {
		none := 0
		out.Verdict, out.Reason, out.Endpoints = Unreachable, down, &none
		return []Outcome{out}
	}
	if f == nil || !f.Limited {
		if text := astrayAt(q, d, gateways, out.Port); text != "" {
			out.Verdict, out.Reason = Unknown, text
			return []Outcome{out}
		}
		return decide()
	}
	caller := identityOf(q.identity)
	if d.WithoutIdentity(q.mesh) != nil {
		caller = nil
	}
	legs := []gatewayLeg{{q.mesh, q.mesh.Gateways, caller}, {d.Mesh, gateways, identityOf(snapshot.GatewayIdentity(f.Origin.Ref, q.mesh))}}
	doubt := ""
	for i := range legs {
		switch verdict, reason := legs[i].verdict(q.outside); verdict {
		case Unknown:
			doubt = cmp.Or(doubt, reason)
		case Unreachable:
			out.Verdict, out.Reason = verdict, reason
			return []Outcome{out}
		}
	}
	list := decide()
	for i := range list {
		if doubt != "" && list[i].Verdict == Allowed {
			list[i].Verdict, list[i].Reason = Unknown, doubt
		}
	}
	return list
}

// astrayAt says what users set for gateways that pass on connections for a Destination because of which these may not reach its pods; empty
// if nothing. Gateways take the rules of their own mesh for the host that callers use.
func astrayAt(q *query, d *snapshot.DestinationPlan, gateways []snapshot.GatewayPlan, port uint32) string {
	hand, host := q.outside.byHand[d.Mesh], hostFrom(q.mesh, d)
	if hand == nil {
		return ""
	}
	for i := range gateways {
		h, found := hand.ConnectionFor(&snapshot.HostQuery{Host: host, Mesh: d.Mesh, Home: d.Mesh.Namespace, Port: port}, q.outside.podsOfGateway(d.Mesh, &gateways[i]), "")
		generated := q.outside.connections[clusterHost{d.Mesh.Cluster, host}]
		if found && h.Astray != "" && !(generated && h.Place == snapshot.HandBehind) {
			return "at east-west gateway " + shortName(gateways[i].Service) + ", " + byHandName(h.Ref) + " " + h.Astray
		}
	}
	return ""
}

// verdict is empty if all of the gateways are known to take the connection.
func (l *gatewayLeg) verdict(o *outside) (verdict Verdict, reason string) {
	hand := o.byHand[l.mesh]
	if hand == nil {
		return "", ""
	}
	passing := 0
	for i := range l.gateways {
		switch v, why := l.judge(o, hand, &l.gateways[i]); {
		case v == "":
			passing++
		case reason == "" || v == Unknown && verdict == Unreachable:
			verdict, reason = v, why
		}
	}
	if reason != "" && passing > 0 {
		return Unknown, reason + "; other gateways pass connections on"
	}
	return verdict, reason
}

// judge says why a gateway refuses the connection, or may do so; empty if it takes it.
func (l *gatewayLeg) judge(o *outside, hand snapshot.ByHand, gw *snapshot.GatewayPlan) (Verdict, string) {
	none := snapshot.Ref{}
	isOpen := l.mesh.DenyByDefault != nil && l.mesh.IsOpenGateway(gw.Service)
	name, may := shortName(gw.Service), ""
	for _, g := range hand.Guards(o.podsOfGateway(l.mesh, gw)) {
		switch r := g.Decide(&snapshot.Call{PodPort: gw.ContainerPort, Caller: l.caller}); {
		case r.Denied != none:
			return Unreachable, byHandName(r.Denied) + " denies connections to east-west gateway " + name
		case r.Closed != none && r.Allowed == none && !isOpen && len(r.MayAllow) > 0:
			may = "nothing else allows connections to east-west gateway " + name + ", and " + whatText(r.MayAllow)
		case r.Closed != none && r.Allowed == none && !isOpen:
			return Unreachable, byHandName(r.Closed) + " lets east-west gateway " + name + " take only what a policy allows, and none allows connections to it"
		case len(r.MayDeny) > 0:
			may = "of connections to east-west gateway " + name + ", " + whatText(r.MayDeny)
		}
	}
	if may != "" {
		return Unknown, may
	}
	return "", ""
}

// identityOf is the identity of a SPIFFE ID of a service account; nil if the text is none.
func identityOf(text string) *snapshot.Identity {
	domain, rest, _ := strings.Cut(strings.TrimPrefix(text, "spiffe://"), "/ns/")
	if namespace, account, ok := strings.Cut(rest, "/sa/"); ok {
		return &snapshot.Identity{TrustDomain: domain, Namespace: namespace, ServiceAccount: account}
	}
	return nil
}
