package explain

import (
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"

	"github.com/meshctl/meshctl/engine/access"
	networkingv1 "github.com/meshctl/meshctl/engine/api/networking/v1"
	"github.com/meshctl/meshctl/engine/snapshot"
)

// outside is what users wrote in clusters, beside policies.
type outside struct {
	clusters map[string]*snapshot.Cluster
	// byHand is what there is for each mesh in its cluster, if that is anything.
	byHand map[*snapshot.MeshPlan]snapshot.ByHand
}

// newOutside reads what users wrote for the meshes of a State.
func newOutside(state *snapshot.State, clusters map[string]*snapshot.Cluster) *outside {
	o := &outside{clusters: clusters, byHand: map[*snapshot.MeshPlan]snapshot.ByHand{}}
	for _, m := range state.Plan.Meshes {
		if c := clusters[m.Cluster]; c != nil && m.Dialect.Inspect != nil {
			if hand := m.Dialect.Inspect(c, state.Input.Management.Plane()); !hand.Empty() {
				o.byHand[m] = hand
			}
		}
	}
	return o
}

// guardsOf are what users' objects say about calls to the pods of a Destination that have some labels; none if they say nothing.
func (o *outside) guardsOf(d *snapshot.DestinationPlan, with map[string]string) []snapshot.Guard {
	k := d.Destination.Spec.KubeService
	if d.Mesh == nil || k == nil || o.byHand[d.Mesh] == nil {
		return nil
	}
	of := &snapshot.PodQuery{Mesh: d.Mesh, Namespace: k.Ref.Namespace}
	pods := podsOf(o.clusters[d.Mesh.Cluster], k.Ref.Namespace, k.WorkloadSelectorLabels)
	for _, e := range endpointsOf(d, with) {
		labels, found := pods[e.IpAddress]
		if !found {
			labels = e.Labels // of its workload
		}
		of.Pods = append(of.Pods, labels)
	}
	if len(of.Pods) == 0 { // those that will be
		of.Pods = append(of.Pods, k.WorkloadSelectorLabels)
	}
	return o.byHand[d.Mesh].Guards(of)
}

// podsOf are the labels of the pods that a selector selects, by address.
func podsOf(c *snapshot.Cluster, namespace string, selector map[string]string) map[string]map[string]string {
	out := map[string]map[string]string{}
	at, _ := slices.BinarySearchFunc(c.Pods, namespace, func(p *corev1.Pod, namespace string) int { return strings.Compare(p.Namespace, namespace) })
	for ; at < len(c.Pods) && c.Pods[at].Namespace == namespace; at++ {
		if p := c.Pods[at]; hasLabels(p.Labels, selector) {
			out[p.Status.PodIP] = p.Labels
			for _, also := range p.Status.PodIPs {
				out[also.IP] = p.Labels
			}
		}
	}
	return out
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

// judged is what AccessPolicies and users' objects together decide about a call to a group of pods.
type judged struct {
	verdict Verdict
	reason  string
	// ours is the decision of AccessPolicies, which is all there is if no guard decides.
	ours access.Decision
	// byHand: what users wrote decides, whatever AccessPolicies say.
	byHand bool
}

// judge decides about a call. The guard is nil if users wrote nothing about the pods.
func judge(d *snapshot.DestinationPlan, from *snapshot.MeshPlan, how connection, call snapshot.Call, guard snapshot.Guard) judged {
	if how.plain != nil {
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
	out := judged{ours: access.Allows(d, from, &call)}
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
			if id := identityOf(text); id != nil {
				return id
			}
		}
	}
	return nil
}

// hiddenBy says because of what users wrote the callers' proxies do not know a host of a namespace; empty if they do.
func (q *query) hiddenBy(host, home string) string {
	k := q.workload.Spec.Kubernetes
	if k == nil || q.outside.byHand[q.mesh] == nil || isGateway(q.workload) || q.egress(snapshot.RefOf(snapshot.Workload, q.workload)) != nil {
		return "" // a generated object says what they know, and no Sidecar says it of gateways (Istio, PushContext.doGetSidecarScope)
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
		return Unknown, "the proxies of the callers do not know it: " + by + ". Whether requests reach it past them is for outboundTrafficPolicy of the mesh, which is not read; such requests take no route and present no identity"
	}
	return Unreachable, "the proxies of the callers do not know it: " + by
}

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
