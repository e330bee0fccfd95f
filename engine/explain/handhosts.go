package explain

import (
	"fmt"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/meshctl/meshctl/engine/snapshot"
)

// definedByHand says that, or that it is not known whether, an object that users wrote says where a host is that callers know only by
// a generated one; empty if none does. Of two ServiceEntries the mesh uses the older one (Istio, sortConfigByCreationTime), and a
// Service of Kubernetes before both (SidecarScope.appendSidecarServices).
func definedByHand(q *query, host string) string {
	k := q.workload.Spec.Kubernetes
	if k == nil {
		return ""
	}
	if by := serviceOfHost(q.clusters[q.mesh.Cluster], host); by != "" {
		return by + " has this host, too, and the mesh uses it first: where its requests end is not where those for the other one do"
	}
	hand := q.outside.byHand[q.mesh]
	if hand == nil {
		return ""
	}
	of := &snapshot.HostQuery{Host: host, Mesh: q.mesh, Home: q.mesh.Namespace, Generated: true, Sources: []string{k.Controller.Namespace}}
	for _, x := range hand.Endpoints(of) {
		ours := q.outside.hosts.find(x.Ref, []string{host})
		since, known := q.created[ours]
		switch object := objectOf(q.Index, x.Ref); {
		case ours == snapshot.Ref{} || object == nil:
		case !known:
			return byHandName(x.Ref) + " also defines where " + host + " is, and the mesh uses the older of it and the generated one: which that is, is not known"
		case olderThan(object, ours, since):
			return byHandName(x.Ref) + " defines where " + host + " is, as it is older than the generated one: where the requests end is not evaluated"
		}
	}
	return ""
}

// endpointsByHand says that an object that users wrote in the namespace of a service adds endpoints to it (Istio, EndpointIndex: they
// are those of the host in that namespace, whoever names it); empty if none does.
func endpointsByHand(q *query, d *snapshot.DestinationPlan) string {
	k, from, hand := d.Destination.Spec.KubeService, q.workload.Spec.Kubernetes, q.outside.byHand[q.mesh]
	if hand == nil || k == nil || from == nil {
		return ""
	}
	of := &snapshot.HostQuery{Host: d.LocalFQDN, Mesh: q.mesh, Home: k.Ref.Namespace}
	for _, x := range hand.Endpoints(of) {
		if x.Ref.Namespace == k.Ref.Namespace {
			return fmt.Sprintf("%s is for %s, too, and may add endpoints to those of the Service, which are not evaluated", byHandName(x.Ref), d.LocalFQDN)
		}
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
