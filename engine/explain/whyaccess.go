package explain

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	commonv1 "github.com/meshctl/meshctl/engine/api/common/v1"
	"github.com/meshctl/meshctl/engine/snapshot"
)

// destinationOutcomes are where requests for a port and subset of a Destination end: more than one if not all pods are alike.
func (q *query) destinationOutcomes(d *snapshot.DestinationPlan, port uint32, subset string) []Outcome {
	out := Outcome{
		Destination: d.Ref, Host: d.LocalFQDN, Port: port, Cluster: q.clusterOf(d.Ref), Subset: subset, service: serviceRef(d),
	}
	if d.Mesh == nil || !reaches(q.mesh, d) {
		out.Verdict, out.Reason = Unreachable, "callers in mesh "+q.mesh.Ref.Name+" have no name for it"
		return []Outcome{out}
	}
	out.Host = hostFrom(q.mesh, d)
	if out.service != nil && portOf(d, port) == nil && port != 0 {
		out.Verdict, out.Reason = Unreachable, noPortText(d, port)
		return []Outcome{out}
	}
	if reason := untranslated(q, d, port); reason != "" {
		out.Verdict, out.Reason = Unknown, reason
		return []Outcome{out}
	}
	endpoints, with, unknown := q.podsOfSubset(d, subset)
	if unknown != "" {
		out.Verdict, out.Reason = Unreachable, unknown
		return []Outcome{out}
	}
	if out.service != nil {
		ready := len(endpoints)
		out.Endpoints = &ready
	}
	out.Hops = q.hops(d, port, subset)
	if reason := q.trustMissing(d); reason != "" {
		out.Verdict, out.Reason = Unreachable, reason
		return []Outcome{out}
	}
	how := connectionOf(q.Index, q.workload, q.mesh, d, port, subset)
	if how.instead != "" && subset != "" {
		if _, found := subsetByHand(q, d, subset); !found {
			out.Verdict, out.Reason = Unreachable, how.instead+", and does not define subset "+subset
			return []Outcome{out}
		}
	}
	if by := plainByPeers(q, d, how, with); by != "" {
		out.Verdict, out.Reason = Unreachable, by
		return []Outcome{out}
	}
	decide := func() []Outcome { return q.decided(out, d, port, how, with) }
	switch {
	case !d.ThroughGateways(q.mesh):
		return decide()
	case how.refusedByGateways(&out):
		return []Outcome{out}
	}
	return q.throughGateways(out, d, d.Mesh.Gateways, decide)
}

// resolvesPods reports whether the callers resolve the pods of a Destination: their proxies then connect to the address that they
// have, and not to one that a route chooses (Istio, ORIGINAL_DST for headless Services).
func resolvesPods(q *query, d *snapshot.DestinationPlan) bool {
	k := d.Destination.Spec.KubeService
	return k != nil && k.Headless && d.Mesh != nil && d.Mesh.Ref == q.mesh.Ref
}

// untranslated says that the pods of a headless service serve one of its ports on another one, to which nothing translates it for callers
// that resolve the pods (kubernetes.io: headless Services); empty if none of them does.
func untranslated(q *query, d *snapshot.DestinationPlan, port uint32) string {
	if !resolvesPods(q, d) {
		return ""
	}
	k := d.Destination.Spec.KubeService
	for i := range k.EndpointSubsets {
		if number, serves := snapshot.SubsetPort(k, &k.EndpointSubsets[i], port); serves && number != port {
			return fmt.Sprintf("%s is headless: callers connect to port %d of its pods themselves, which serve it on port %d: whether anything answers there is not known. Give the Service the port of its pods", d.Ref.Name, port, number)
		}
	}
	return ""
}

// resolvedOutcomes are where the requests of a route to such a Destination end, which is no matter of the route.
func (q *query) resolvedOutcomes(d *snapshot.DestinationPlan, t snapshot.Target, described *Target) []Outcome {
	if _, _, unknown := q.podsOfSubset(d, t.Subset); unknown != "" {
		return []Outcome{{Verdict: Unreachable, Destination: d.Ref, Port: t.Port, Cluster: q.clusterOf(d.Ref), Subset: t.Subset, Reason: unknown}}
	}
	if d.Ref == q.called {
		described.Subset = ""
		return q.destinationOutcomes(d, t.Port, "")
	}
	if portOf(d, t.Port) == nil {
		return q.destinationOutcomes(d, t.Port, t.Subset)
	}
	return []Outcome{{
		Verdict: Unknown, Destination: d.Ref, Port: t.Port, Cluster: q.clusterOf(d.Ref), Subset: t.Subset,
		Reason: d.Ref.Name + " is headless: the proxies of the callers send to the address that these have resolved, which is of " + q.called.Name,
	}}
}

// decided are an outcome with its verdict, or several if not all pods with some labels are alike.
func (q *query) decided(out Outcome, d *snapshot.DestinationPlan, port uint32, how connection, with map[string]string) (list []Outcome) {
	groups := q.outside.podGroups(d, port, with)
	if how.remote() && slices.ContainsFunc(groups, func(g *podGroup) bool { return !g.local() }) {
		groups = slices.DeleteFunc(groups, (*podGroup).local)
	}
	if how.past && slices.ContainsFunc(groups, func(g *podGroup) bool { return !g.machines }) {
		groups = slices.DeleteFunc(groups, func(g *podGroup) bool { return g.machines }) // the network of Kubernetes does not know them
	}
	if out.Endpoints != nil {
		ready := 0
		for _, g := range groups {
			ready += g.pods
		}
		out.Endpoints = &ready
	}
	for _, g := range groups {
		one := out
		if len(groups) > 1 && out.Endpoints != nil && *out.Endpoints > 0 {
			one.Endpoints, one.some = &g.pods, true
		}
		q.decideAccess(&one, d, port, how, g)
		adviser{q}.noteUndenied(&one, d, port, g)
		one.needPods()
		if text := lacksPort(d, port); one.Verdict == Unreachable && one.Endpoints != nil && *one.Endpoints == 0 && text != "" {
			one.Reason, one.Change = text, nil
		}
		list = merged(list, one)
	}
	if !slices.ContainsFunc(list, func(o Outcome) bool { return o.Verdict != list[0].Verdict || o.Reason != list[0].Reason }) {
		list[0].Endpoints, list[0].some = out.Endpoints, false
		return list[:1]
	}
	return list
}

// merged adds the outcome at some pods to those at others: where the same becomes of calls, it is one.
func merged(list []Outcome, one Outcome) []Outcome {
	at := slices.IndexFunc(list, func(o Outcome) bool { return o.Verdict == one.Verdict && o.Reason == one.Reason })
	if at < 0 || list[at].Endpoints == nil || one.Endpoints == nil {
		return append(list, one)
	}
	sum := *list[at].Endpoints + *one.Endpoints
	list[at].Endpoints = &sum
	return list
}

// needPods makes an outcome unreachable that has no ready pod: nobody is there to refuse requests.
func (o *Outcome) needPods() {
	if o.Endpoints == nil || *o.Endpoints > 0 {
		return
	}
	reason := "no pod of " + o.text() + " is ready"
	if o.Verdict == Refused {
		reason += ", and one would refuse it: " + o.Reason
	}
	o.Verdict, o.Reason = Unreachable, reason
}

// trustMissing says why a service does not take the certificates of the callers, or they not its;
// empty if they do.
func (q *query) trustMissing(d *snapshot.DestinationPlan) string {
	switch {
	case q.mesh.Ref == d.Mesh.Ref || !d.Mesh.Dialect.SPIFFE || d.Mesh.Limited:
		return ""
	case !d.Mesh.Accepts(q.mesh.TrustDomain):
		// Of two ways to accept it, the one that leaves callers apart.
		return fmt.Sprintf("mesh %s does not accept callers of trust domain %s; %s", d.Mesh.Ref.Name, q.mesh.TrustDomain, d.Mesh.Dialect.TrustHint(d.Mesh.Ref.Name, q.mesh.TrustDomain, true))
	case !q.mesh.MayShareRoot(d.Mesh):
		return fmt.Sprintf("meshes %s and %s trust no common root; see meshctl trust show --clusters", q.mesh.Ref.Name, d.Mesh.Ref.Name)
	}
	return ""
}

// decideAccess sets the verdict of policies, and of what users wrote, on a group of the pods of a Destination.
func (q *query) decideAccess(out *Outcome, d *snapshot.DestinationPlan, port uint32, how connection, group *podGroup) {
	advise := adviser{q}
	call := advise.callTo(d, port, group)
	if reason := departedFrom(q.Index, d, group.others); reason != "" {
		out.Verdict, out.Reason = Unknown, reason
		return
	}
	answer := judge(d, q.mesh, how, call, group)
	decision := answer.ours
	if answer.byHand {
		out.Verdict, out.Reason = answer.verdict, answer.reason
		return
	}
	if len(decision.Denied) > 0 {
		advise.denied(out, d, port, group, &decision)
		return
	}
	switch decision.Open {
	case snapshot.OpenAsGateway:
		out.Verdict, out.Reason = Allowed, "it is a gateway, and stays open where access is denied by default"
		return
	case snapshot.OpenByMesh:
		out.Verdict, out.Reason = Allowed, "its mesh allows all calls, whatever policies say"
		return
	case snapshot.OpenByDefault:
		out.Verdict, out.Reason = Allowed, "no AccessPolicy selects "+d.Ref.Name+", and access is open by default"
		if len(group.denying) > 0 {
			out.Reason = "no AccessPolicy on " + d.Ref.Name + " denies it, and access is open by default"
		}
		return
	}
	if len(decision.By) > 0 {
		out.By = decision.By
		out.Verdict, out.Reason = Allowed, policiesText(out.By)+verb(len(out.By), " allows it", " allow it")
		if len(group.others) > 0 {
			out.Reason += ": no AccessPolicy selects " + d.Ref.Name + ", and " + othersText(group.others)
		}
		return
	}
	out.Verdict = Refused
	switch {
	case len(group.others) > 0:
		advise.refusedInFront(out, d, port, group, &decision)
	case how.plain != "":
		out.Reason = fmt.Sprintf("the callers present no identity, as %s, and no policy on %s is for anyone", how.plain, d.Ref.Name)
		if by := how.policy; by != nil {
			out.Change = &Addition{Policy: by.Origin.Ref, Text: "set TLS mode ISTIO_MUTUAL in " + kindAndName(by.Origin.Ref)}
		}
	case advise.refusedByOthers(out, d, port, &call):
	case decision.Nearest != nil:
		out.Reason, out.Change = advise.nearestRule(d, &decision, port, group.port)
	case len(d.Callers.SharedWith) > 0:
		out.Reason = "the pods of " + d.Ref.Name + " are also those of " + services(d.Callers.SharedWith) + ", and the policies on these services together allow no call; allow the same callers in all of them"
	case len(d.Access) > 0:
		out.Reason = "the policies on " + d.Ref.Name + " allow nobody who comes from mesh " + q.mesh.Ref.Name
		out.Change = &Addition{Policy: d.Access[0].Origin.Ref, Caller: advise.account(), Text: "in " + kindAndName(d.Access[0].Origin.Ref) + ", add " + advise.caller() + " to spec.sourceSelector" + advise.alsoOpens(d.Access[0].Origin.Ref)}
	default:
		out.Reason = fmt.Sprintf("no AccessPolicy selects %s, and %s denies access by default", d.Ref.Name, kindAndName(d.Mesh.DenyByDefault.Ref))
		out.Change = &Addition{Caller: advise.account(), Text: "create an AccessPolicy: " + advise.command(d)}
	}
}

// ownRules are what the policies on a service allow by themselves.
func ownRules(d *snapshot.DestinationPlan) (rules []snapshot.EffectiveRule) {
	for _, r := range d.Access {
		rules = append(rules, snapshot.EffectiveRule{
			Policy: r.Origin.Ref, Anyone: r.Anyone, Sources: r.Sources, Paths: r.Paths, Methods: r.Methods,
			PodPorts: snapshot.PodPorts(d.Destination.Spec.KubeService, r.Ports),
		})
	}
	return rules
}

// policiesText names policies: "AccessPolicy a/b", or with more of them "AccessPolicies a/b, c/d".
func policiesText(refs []snapshot.Ref) string {
	names := make([]string, len(refs))
	for i, ref := range refs {
		names[i] = shortName(ref)
	}
	return verb(len(refs), "AccessPolicy ", "AccessPolicies ") + firstOf(names)
}

func verb(n int, one, more string) string {
	if n == 1 {
		return one
	}
	return more
}

// podPortOf is where the pods of a service listen for one of its ports.
func podPortOf(d *snapshot.DestinationPlan, port uint32) uint32 {
	if p := portOf(d, port); p != nil {
		port, _ = snapshot.PodPort(d.Destination.Spec.KubeService, *p)
	}
	return port
}

// queryOf is what follows a path after a question mark.
func queryOf(path string) string {
	_, query, _ := strings.Cut(path, "?")
	return query
}

func isHTTPPort(d *snapshot.DestinationPlan, port uint32) bool {
	p := portOf(d, port)
	return p == nil || dialectOf(d).IsHTTP(p)
}

// dialectOf is that of the mesh of a Destination; nil if that is not known.
func dialectOf(d *snapshot.DestinationPlan) *snapshot.Dialect {
	if d.Mesh == nil {
		return nil
	}
	return d.Mesh.Dialect
}

// hops are the connections on the way to the pods of a Destination.
func (q *query) hops(d *snapshot.DestinationPlan, port uint32, subset string) []Hop {
	identity := q.identity
	if d.WithoutIdentity(q.mesh) != nil {
		identity = ""
	}
	pods := Hop{To: "a pod of " + d.Ref.Name, Cluster: d.Mesh.Cluster, Identity: identity}
	if !d.ThroughGateways(q.mesh) {
		return []Hop{pods}
	}
	gateway := Hop{
		To: "east-west gateway of " + d.Mesh.Cluster, Cluster: d.Mesh.Cluster, Identity: identity, Addresses: addressesOf(d.Mesh.Gateways),
		SNI: fmt.Sprintf("outbound_.%d_.%s_.%s", port, subset, d.Federation.Hostname),
	}
	if !d.Federation.Limited {
		return []Hop{gateway, pods} // the gateway passes on the callers' own TLS session
	}
	sni := snapshot.RelayedSNI(d.Federation.Hostname, port, subset)
	own := Hop{To: "east-west gateway of " + q.mesh.Cluster, Cluster: q.mesh.Cluster, Identity: identity, SNI: sni}
	gateway.Identity, gateway.SNI = snapshot.GatewayIdentity(d.Federation.Origin.Ref, q.mesh), sni
	pods.Identity = ""
	for _, gw := range d.Mesh.Gateways {
		if len(gw.Identities) > 0 {
			pods.Identity = gw.Identities[0]
			break
		}
	}
	return []Hop{own, gateway, pods}
}

func addressesOf(gateways []snapshot.GatewayPlan) []string {
	var out []string
	for _, gw := range gateways {
		for _, address := range gw.Addresses {
			out = append(out, address+":"+strconv.FormatUint(uint64(gw.Port), 10))
		}
	}
	return out
}

// serviceRef names the Service of a Destination; nil if it has none.
func serviceRef(d *snapshot.DestinationPlan) *commonv1.ClusterObjectRef {
	if k := d.Destination.Spec.KubeService; k != nil {
		return &k.Ref
	}
	return nil
}

// markIdle marks the outcomes that get no requests now: those without ready pods, and those
// after the first priority that has some. Without any such, none is marked.
func markIdle(list []Outcome) []Outcome {
	empty := func(o Outcome) bool { return o.Endpoints != nil && *o.Endpoints == 0 }
	first := slices.IndexFunc(list, func(o Outcome) bool { return !empty(o) })
	for i := range list {
		list[i].Idle = first >= 0 && (empty(list[i]) || list[i].Priority > list[first].Priority)
	}
	return list
}

// divide gives a share to outcomes of which pods decide which one gets how much: to the only one
// that gets any.
func divide(list []Outcome, share float64) []Outcome {
	var busy []*Outcome
	for i := range list {
		if !list[i].Idle {
			busy = append(busy, &list[i])
		}
	}
	if len(busy) == 1 {
		busy[0].Share = &share
	}
	return list
}
