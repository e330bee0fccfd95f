package traffic

import (
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/util/validation"

	discoveryv1 "github.com/meshctl/meshctl/engine/api/discovery/v1"
	"github.com/meshctl/meshctl/engine/snapshot"
)

// Names finds what the hosts in the numbers of proxies stand for.
type Names struct {
	// local are the hosts that a mesh, a cluster, or a namespace of one, calls services by; shared are those of federation and
	// VirtualDestinations, which are the same everywhere.
	local  map[hostAt]snapshot.Ref
	shared map[string]snapshot.Ref
}

// hostAt is a host as the callers of a mesh, or if that is zero of a cluster, or of a namespace of it, know it.
type hostAt struct {
	mesh      snapshot.Ref
	cluster   string
	namespace string
	host      string
}

// NewNames indexes a Plan.
func NewNames(plan *snapshot.Plan) *Names {
	n := &Names{local: map[hostAt]snapshot.Ref{}, shared: map[string]snapshot.Ref{}}
	for d := range plan.Destinations.All() {
		if s := d.Destination.Spec.KubeService; s != nil && d.LocalFQDN != "" {
			n.local[hostAt{cluster: s.Ref.ClusterName, host: d.LocalFQDN}] = d.Ref
		}
		for _, v := range d.Views {
			n.local[hostAt{mesh: v.Mesh.Ref, host: v.Host}] = d.Ref
		}
		if d.Federation != nil {
			n.shared[d.Federation.Hostname] = d.Ref
		}
	}
	for _, v := range plan.VirtualDestinations {
		if !v.OfNamespace() {
			n.shared[v.Hostname] = v.Ref
		} else if slices.ContainsFunc(v.Views, func(view *snapshot.VirtualView) bool { return len(view.Priorities) > 0 }) {
			n.local[hostAt{cluster: v.Ref.Cluster, namespace: v.Ref.Namespace, host: v.Hostname}] = v.Ref
		}
	}
	return n
}

// Key is the edge of a target of a workload's proxy. What is not known becomes the edge to all that is not: a pod may say anything about
// hosts and subsets, and only names that are in the Plan, or have the form of one, leave its numbers.
func (n *Names) Key(workload *discoveryv1.Workload, t Target) Key {
	from := snapshot.RefOf(snapshot.Workload, workload)
	if t.Serves {
		return Key{To: from}
	}
	host := strings.ToLower(t.Host)
	mesh := snapshot.Ref{Kind: snapshot.Mesh, Namespace: workload.Spec.Mesh.Namespace, Name: workload.Spec.Mesh.Name}
	to, known := n.local[hostAt{mesh: mesh, host: host}]
	if k := workload.Spec.Kubernetes; !known && k != nil {
		if to, known = n.local[hostAt{cluster: k.Controller.ClusterName, host: host}]; !known {
			to, known = n.local[hostAt{cluster: k.Controller.ClusterName, namespace: k.Controller.Namespace, host: host}]
		}
	}
	if !known {
		to, known = n.shared[host]
	}
	if !known || t.Port > 1<<16-1 || t.Subset != "" && len(validation.IsDNS1123Label(t.Subset)) > 0 {
		return Key{From: from}
	}
	return Key{From: from, To: to, Port: t.Port, Subset: t.Subset}
}
