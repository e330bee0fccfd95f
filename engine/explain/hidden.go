package explain

import (
	"fmt"
	"strings"

	discoveryv1 "github.com/meshctl/meshctl/engine/api/discovery/v1"
	"github.com/meshctl/meshctl/engine/snapshot"
)

// This file is about hosts that the proxies of callers do not know, and control planes that do not read what is written for them.

// hiddenText begins a reason.
const hiddenText = "the proxies of the callers do not know it: "

// pastProxies is what is known of requests to a name that the proxies of callers do not know.
const pastProxies = "whether requests reach it past them is for outboundTrafficPolicy and the network of the cluster; such requests take no route and present no identity"

// hiddenBy says why the callers' proxies do not know a host that an object in a namespace makes known, as users wrote it or the
// mesh's settings say; empty if they do.
func (q *query) hiddenBy(host, home string) string {
	k := q.workload.Spec.Kubernetes
	if k == nil {
		return ""
	}
	if home == q.mesh.Namespace && q.mesh.Dialect.Unknown != nil {
		if by := q.mesh.Dialect.Unknown(q.mesh, nil, k.Controller.Namespace); by != "" {
			return by
		}
	}
	return q.notImported(host, home)
}

// notImported names what users wrote because of which the callers' proxies do not import a host of a namespace; empty if they do.
func (q *query) notImported(host, home string) string {
	hand := q.byHandOfCallers()
	if hand == nil {
		return ""
	}
	of := &snapshot.HostQuery{Host: host, Mesh: q.mesh, Home: home, Port: q.request.Port}
	if by, hides := hand.Hides(of, q.callers()); hides {
		return byHandName(by.Ref) + " " + by.What + "; " + by.Hint
	}
	return ""
}

// byHandOfCallers is what users wrote about what the callers' proxies know; nil if a generated object says that, and of gateways, of
// which no Sidecar says it (Istio, PushContext.doGetSidecarScope).
func (q *query) byHandOfCallers() snapshot.ByHand {
	if sidecar, _ := generatedSidecar(q); isGateway(q.workload) || sidecar != nil {
		return nil
	}
	return q.outside.byHand[q.mesh]
}

// generatedSidecar is the generated object that says what the callers' proxies know; nil if none does, or if the mesh uses an older one
// that users wrote for the same pods. Contested says that it is not known which of the two is older.
func generatedSidecar(q *query) (generated *snapshot.SidecarPlan, contested string) {
	generated = q.sidecars[snapshot.RefOf(snapshot.Workload, q.workload)]
	hand := q.outside.byHand[q.mesh]
	if generated == nil || hand == nil || q.mesh.Dialect.ByAge == nil {
		return generated, ""
	}
	since, known := q.created[generated.Ref]
	for _, x := range hand.Egress(q.callers()) {
		o, _ := objectOf(q.Index, x.Ref).(snapshot.APIObject)
		if o == nil {
			continue
		}
		switch _, pods := q.mesh.Dialect.ByAge(o); {
		case len(pods) == 0: // one for the namespace comes after those that select pods
		case !known:
			contested = byHandName(x.Ref) + " " + x.What + " that say which hosts the proxies of the callers know: which that is, is not known without their creation times"
		case olderThan(o, generated.Ref, since):
			return nil, ""
		}
	}
	return generated, contested
}

// callers are the pods of the workload.
func (q *query) callers() *snapshot.PodQuery {
	k := q.workload.Spec.Kubernetes
	return &snapshot.PodQuery{Mesh: q.mesh, Namespace: k.Controller.Namespace, Pods: []map[string]string{k.PodLabels}}
}

// hiddenFrom says why the callers' proxies do not know the host of a Destination; empty if they do.
func hiddenFrom(q *query, d *snapshot.DestinationPlan, host string) string {
	switch {
	case d.Destination.Spec.KubeService == nil || q.workload.Spec.Kubernetes == nil:
		return ""
	case q.mesh.Ref != d.Mesh.Ref:
		return q.hiddenBy(host, q.mesh.Namespace)
	}
	return q.hiddenByService(d, host)
}

// hiddenHost says why the callers' proxies do not know the host of a Destination, because of what users wrote, the mesh's settings or
// ServiceDependencies; empty if they do.
func hiddenHost(q *query, d *snapshot.DestinationPlan, host string) string {
	if !isGateway(q.workload) {
		if missing := q.hostMissing(d.Ref, host); missing != "" {
			return missing
		}
	}
	return prefixed(hiddenText, hiddenFrom(q, d, host))
}

// pastUnknown is how callers connect to a service of their own cluster whose host their proxies do not know, and pass on.
func pastUnknown() connection {
	return connection{plain: "their proxies do not know it and pass requests on as they are", foreign: true, past: true}
}

// answerHidden answers for a Destination whose host the callers' proxies do not know, as the sentence hidden says. A service of their
// own cluster they may call nevertheless, past the mesh: its name is one of Kubernetes, too.
func (q *query) answerHidden(out *Why, d *snapshot.DestinationPlan, hidden string) {
	if _, contested := generatedSidecar(q); contested != "" {
		out.Verdict, out.Reason = Unknown, contested+"; by the generated one, "+hidden
		return
	}
	if q.mesh.Ref != d.Mesh.Ref {
		out.Verdict, out.Reason = Unreachable, hidden
		return
	}
	what, says := unknowns(q)
	switch what {
	case snapshot.UnknownsRefused:
		out.Verdict, out.Reason = Unreachable, hidden+", and "+says+" lets them call nothing else"
	case snapshot.UnknownsElsewhere:
		out.Verdict, out.Reason = Unknown, hidden+", and "+says+" sends such requests to where it says"
	default:
		q.answerPast(out, d, pastUnknown())
		out.Notes = append(out.Notes, hidden+". They send the requests on as they are, past the mesh, as outboundTrafficPolicy is ALLOW_ANY: no route and no setting applies, and the callers present no identity")
	}
}

// namedByHand says that users wrote routes for a host which the callers' proxies do not know: with other hosts of the same object that
// they do know, or on port 80, they get the routes all the same (Istio, separateVSHostsAndServices); empty if nobody did.
func namedByHand(q *query, d *snapshot.DestinationPlan, port *discoveryv1.KubeServicePort) string {
	of := q.hostQuery(d)
	of.Traffic = trafficOf(d.Mesh.Dialect, port)
	if first := q.handRoutes(of, false); of.Traffic == snapshot.Requests && first != nil && !first.Pattern {
		return byHandName(first.Ref) + " has routes for " + of.Host + ", of which the proxies of the callers know no service: whether they use these is not known"
	}
	return ""
}

// targetByHand says that users wrote where a Destination is to which a route sends requests; empty if they did not. What a Sidecar does
// not import is known because of the route.
func targetByHand(q *query, d *snapshot.DestinationPlan) string {
	if d.Mesh == nil || !reaches(q.mesh, d) {
		return ""
	}
	at := placeOf(q, d)
	at.hidden = hiddenFrom(q, d, at.host) != ""
	return definedByHand(q, at)
}

// targetUnknown says why the callers' proxies do not know a Destination to which a route sends requests; empty if they do. What a
// Sidecar does not import is known because of the route; of their own namespace, they learn a service in this way that is not exported
// to it, and not always its endpoints (Istio, model/sidecar.go: destinations that are inferred from virtual services).
func (q *query) targetUnknown(d *snapshot.DestinationPlan) (verdict Verdict, reason string) {
	k, from := d.Destination.Spec.KubeService, q.workload.Spec.Kubernetes
	if k == nil || from == nil || d.Mesh == nil || q.mesh.Dialect.Unknown == nil || !reaches(q.mesh, d) {
		return "", ""
	}
	verdict = Unreachable
	switch {
	case q.mesh.Ref != d.Mesh.Ref:
		k = nil
	case k.Ref.Namespace == from.Controller.Namespace:
		verdict = Unknown
	}
	if reason = q.mesh.Dialect.Unknown(q.mesh, k, from.Controller.Namespace); reason == "" {
		return "", ""
	}
	return verdict, hiddenText + reason
}

// hiddenByService says why the callers' proxies do not know a service of their own mesh; empty if they do.
func (q *query) hiddenByService(d *snapshot.DestinationPlan, host string) string {
	k := d.Destination.Spec.KubeService
	if by := q.notImported(host, k.Ref.Namespace); by != "" {
		return by
	}
	if q.mesh.Dialect.Unknown == nil {
		return ""
	}
	return q.mesh.Dialect.Unknown(q.mesh, k, q.workload.Spec.Kubernetes.Controller.Namespace)
}

// unknowns is what the callers' proxies do with requests for hosts that they do not know, and what says so.
func unknowns(q *query) (what snapshot.Unknowns, says string) {
	if hand := q.byHandOfCallers(); hand != nil {
		if what, by, found := hand.Unknowns(q.callers()); found {
			return what, "outboundTrafficPolicy of " + byHandName(by)
		}
	}
	return q.mesh.Unknowns, "outboundTrafficPolicy in the meshConfig of mesh " + q.mesh.Ref.Name
}

// besideText says that a Destination is of another mesh of the callers' cluster.
func besideText(q *query, d *snapshot.DestinationPlan) string {
	return fmt.Sprintf("%s is of mesh %s, in the cluster of the callers' mesh %s: control planes read all Services of their cluster, and what proxies do for those of another mesh is not followed",
		d.Ref.Name, d.Mesh.Ref.Name, q.mesh.Ref.Name)
}

// ignoring says that the control plane of the callers' mesh, or of that of a Destination, does not read what is written for all of the
// mesh; empty if it does.
func ignoring(q *query, to snapshot.Ref) string {
	meshes := []*snapshot.MeshPlan{q.mesh}
	if d := q.destinations[to]; d != nil && d.Mesh != nil {
		meshes = append(meshes, d.Mesh)
	}
	for _, m := range meshes {
		if len(m.IgnoresOwn) > 0 {
			return fmt.Sprintf("the control plane of mesh %s reads nothing of namespace %s, in which what is for all of the mesh is written (see meshctl describe mesh %s): what its proxies do is not what follows from that",
				m.Ref.Name, strings.Join(m.IgnoresOwn, " and "), m.Ref.Name)
		}
	}
	return ""
}
