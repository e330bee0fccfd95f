package explain

import (
	"cmp"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	discoveryv1 "github.com/meshctl/meshctl/engine/api/discovery/v1"
	"github.com/meshctl/meshctl/engine/snapshot"
)

// place is what says where a host is, besides what users wrote: a Service of a namespace, or else a generated ServiceEntry.
type place struct {
	host, namespace string
	service         bool
	// hidden: the callers' proxies do not know it.
	hidden bool
}

// placeOf is that of a Destination, as the callers know it.
func placeOf(q *query, d *snapshot.DestinationPlan) place {
	if k := d.Destination.Spec.KubeService; k != nil && q.mesh.Ref == d.Mesh.Ref {
		return place{host: d.LocalFQDN, namespace: k.Ref.Namespace, service: true}
	}
	return place{host: hostFrom(q.mesh, d), namespace: q.mesh.Namespace}
}

// definedByHand says that, or that it is not known whether, an object that users wrote says where a host is instead of its place, or adds
// endpoints to it; empty if none does. Proxies take what is of their own namespace, then Services of Kubernetes, then what is exported
// to them by name, and then the oldest (Istio, IstioEgressListenerWrapper.selectServices). Gateways have no namespace of their own in this
// (DefaultSidecarScopeForGateway).
func definedByHand(q *query, at place) string {
	k := q.workload.Spec.Kubernetes
	if k == nil {
		return ""
	}
	if by := serviceOfHost(q.clusters[q.mesh.Cluster], at.host); by != "" && !at.service {
		return by + " has this host, too, and the mesh uses it first: where its requests end is not where those for the other one do"
	}
	hand := q.outside.byHand[q.mesh]
	if hand == nil {
		return ""
	}
	own := k.Controller.Namespace
	of := &snapshot.HostQuery{Host: at.host, Mesh: q.mesh, Home: at.namespace, Generated: !at.service, Sources: []string{own}}
	list := hand.Endpoints(of)
	slices.SortStableFunc(list, func(a, b snapshot.Intersection) int {
		rank := func(x snapshot.Intersection) int {
			switch {
			case x.Ref.Namespace == own:
				return 0
			case x.First:
				return 1
			}
			return 2
		}
		return cmp.Compare(rank(a), rank(b))
	})
	for _, x := range list {
		switch from := x.Ref.Namespace; {
		case q.notImported(at.host, from) != "":
		case at.hidden:
			return byHandName(x.Ref) + " defines where " + at.host + " is: the callers' proxies know no other. Where the requests end is not evaluated"
		case from == own && at.namespace != own && !isGateway(q.workload):
			return byHandName(x.Ref) + " defines where " + at.host + " is for callers in its namespace, whatever else has this host: where the requests end is not evaluated"
		case at.service || own == at.namespace && from != own && !isGateway(q.workload):
		case x.First:
			return byHandName(x.Ref) + " defines where " + at.host + " is, as it is exported to the callers by name: where the requests end is not evaluated"
		default:
			if by := olderPlace(q, x.Ref, at.host); by != "" {
				return by
			}
		}
	}
	// The host has all endpoints of the namespace, whoever names it and whoever sees that (Istio, EndpointIndex).
	for _, x := range hand.Endpoints(&snapshot.HostQuery{Host: at.host, Mesh: q.mesh, Home: at.namespace}) {
		if x.Ref.Namespace == at.namespace && !at.hidden {
			return byHandName(x.Ref) + " is for " + at.host + ", too, and may add endpoints to those that are known, which are not evaluated"
		}
	}
	return ""
}

// takenByAddress says that an object that users wrote for another host takes connections to a port of a Destination; empty if none does.
func takenByAddress(q *query, d *snapshot.DestinationPlan, port *discoveryv1.KubeServicePort) string {
	of := q.hostQuery(d)
	of.Traffic, of.Detects = trafficOf(d.Mesh.Dialect, port), snapshot.PortProtocol(*port) == ""
	switch {
	case q.mesh.Ref == d.Mesh.Ref:
		of.Addresses = calledAt(q.Index, d)
	case d.Federation != nil:
		of.Addresses = snapshot.AddressList(d.Federation.Address)
	}
	return takenAt(q, of)
}

// takenAt is takenByAddress for any host. Gateways listen where their Gateways say.
func takenAt(q *query, of *snapshot.HostQuery) string {
	k, hand := q.workload.Spec.Kubernetes, q.outside.byHand[q.mesh]
	if k == nil || hand == nil || isGateway(q.workload) {
		return ""
	}
	callers := q.callers()
	if egress, _ := generatedSidecar(q); egress != nil {
		if !egress.Egress.Everything { // hosts of others are not among its own
			return ""
		}
		callers = nil
	}
	of.Sources = []string{k.Controller.Namespace}
	for _, x := range hand.Takers(of, callers) {
		return byHandName(x.Ref) + " " + x.What + ": where they end is not evaluated"
	}
	return ""
}

// takenNames are the shorter names of a Service that objects which users wrote have as hosts of their own: proxies take requests for these
// as for that host (Istio, generateVirtualHostDomains and dedupeDomains).
func takenNames(q *query, d *snapshot.DestinationPlan) (out []string) {
	k, hand := d.Destination.Spec.KubeService, q.outside.byHand[q.mesh]
	if k == nil || hand == nil || q.mesh.Ref != d.Mesh.Ref || isGateway(q.workload) || q.workload.Spec.Kubernetes == nil {
		return nil
	}
	for _, host := range []string{k.Ref.Name + "." + k.Ref.Namespace, k.Ref.Name + "." + k.Ref.Namespace + ".svc"} {
		of := &snapshot.HostQuery{Host: host, Mesh: q.mesh, Sources: []string{q.workload.Spec.Kubernetes.Controller.Namespace}, Port: q.request.Port}
		var by []snapshot.Ref
		for _, x := range hand.Endpoints(of) {
			if q.notImported(host, x.Ref.Namespace) == "" {
				by = append(by, x.Ref)
			}
		}
		for _, r := range hand.RoutesFor(of, q.callers()) {
			if !r.Pattern {
				by = append(by, r.Ref)
			}
		}
		if len(by) > 0 {
			out = append(out, "requests for the name "+host+", which "+byHandName(by[0])+" has for itself")
		}
	}
	return out
}

// olderPlace says that, or that it is not known whether, an object that users wrote is older than the generated one for a host.
func olderPlace(q *query, by snapshot.Ref, host string) string {
	ours := q.outside.hosts.find(by, []string{host})
	since, known := q.created[ours]
	switch object := objectOf(q.Index, by); {
	case ours == snapshot.Ref{} || object == nil:
	case !known:
		return byHandName(by) + " also defines where " + host + " is, and the mesh uses the older of it and the generated one: which that is, is not known without their creation times"
	case olderThan(object, ours, since):
		return byHandName(by) + " defines where " + host + " is, as it is older than the generated one: where the requests end is not evaluated"
	}
	return ""
}

// serviceOfHost names the Service in a cluster that has a host; empty if none has.
func serviceOfHost(c *snapshot.Cluster, host string) string {
	if c == nil {
		return ""
	}
	rest, found := strings.CutSuffix(host, ".svc."+c.DomainOrDefault())
	if !found {
		return ""
	}
	for _, s := range c.Services {
		if s.Name+"."+s.Namespace == rest {
			return "Service " + c.Name + "/" + s.Namespace + "/" + s.Name
		}
	}
	return ""
}

// objectOf is an object of a cluster; nil if there is none.
func objectOf(x *Index, ref snapshot.Ref) metav1.Object {
	c := x.clusters[ref.Cluster]
	if c == nil {
		return nil
	}
	if list := c.List(ref.Kind); list != nil {
		if o := list.Find(ref.Namespace, ref.Name); o != nil {
			return o
		}
	}
	return nil
}
