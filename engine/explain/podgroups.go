package explain

import (
	"fmt"
	"slices"

	"github.com/meshctl/meshctl/engine/access"
	"github.com/meshctl/meshctl/engine/inventory"
	"github.com/meshctl/meshctl/engine/snapshot"
)

// podGroup is a group of the pods of a Destination about which the same objects decide.
type podGroup struct {
	// guard is what users wrote about them; nil if they wrote nothing.
	guard snapshot.Guard
	// beside are other Destinations of which they are, and that do not let all callers in: policies select pods, and not services.
	beside []*snapshot.DestinationPlan
	count  int
}

// groupsOf divides those pods of a Destination that have some labels; there is at least one group.
func (o *outside) groupsOf(d *snapshot.DestinationPlan, with map[string]string) []*podGroup {
	k := d.Destination.Spec.KubeService
	if d.Mesh == nil || k == nil {
		return []*podGroup{{}}
	}
	hand, closed := o.byHand[d.Mesh], o.closed[inventory.Namespace{Cluster: k.Ref.ClusterName, Name: k.Ref.Namespace}]
	if hand == nil && !slices.ContainsFunc(closed, func(c *snapshot.DestinationPlan) bool { return c != d }) {
		return []*podGroup{{}}
	}
	var groups []*podGroup
	labels := map[*podGroup][]map[string]string{}
	for _, pod := range o.podLabels(d, with) {
		var beside []*snapshot.DestinationPlan
		for _, c := range closed {
			if c != d && hasLabels(pod, c.Destination.Spec.KubeService.WorkloadSelectorLabels) {
				beside = append(beside, c)
			}
		}
		at := slices.IndexFunc(groups, func(g *podGroup) bool { return slices.Equal(g.beside, beside) })
		if at < 0 {
			at = len(groups)
			groups = append(groups, &podGroup{beside: beside})
		}
		g := groups[at]
		g.count++
		labels[g] = append(labels[g], pod)
	}
	if hand == nil {
		return groups
	}
	var out []*podGroup
	for _, g := range groups {
		guards := hand.Guards(&snapshot.PodQuery{Mesh: d.Mesh, Namespace: k.Ref.Namespace, Pods: labels[g]})
		for _, guard := range guards {
			out = append(out, &podGroup{guard: guard, beside: g.beside, count: guard.Pods()})
		}
		if len(guards) == 0 {
			out = append(out, g)
		}
	}
	return out
}

// podsOfDestination are the pods of a Destination that have some labels; nil if users wrote nothing for its mesh.
func (o *outside) podsOfDestination(d *snapshot.DestinationPlan, with map[string]string) *snapshot.PodQuery {
	k := d.Destination.Spec.KubeService
	if d.Mesh == nil || k == nil || o.byHand[d.Mesh] == nil {
		return nil
	}
	return &snapshot.PodQuery{Mesh: d.Mesh, Namespace: k.Ref.Namespace, Pods: o.podLabels(d, with)}
}

// podLabels are the labels of the ready pods of a Destination that have some; those of the pods that will be, if there are none.
func (o *outside) podLabels(d *snapshot.DestinationPlan, with map[string]string) (list []map[string]string) {
	k := d.Destination.Spec.KubeService
	pods := podsOf(o.clusters[d.Mesh.Cluster], k.Ref.Namespace, k.WorkloadSelectorLabels)
	for _, e := range endpointsOf(d, with) {
		labels, found := pods[e.IpAddress]
		if !found {
			labels = e.Labels // of its workload
		}
		list = append(list, labels)
	}
	if len(list) == 0 {
		list = append(list, k.WorkloadSelectorLabels)
	}
	return list
}

// allows is what AccessPolicies decide about a call to the pods, and on which Destination: of all that select a pod, one that allows it
// is enough (istio.io: Authorization Policy).
func (g *podGroup) allows(d *snapshot.DestinationPlan, from *snapshot.MeshPlan, call *snapshot.Call) (access.Decision, *snapshot.DestinationPlan) {
	own := access.Allows(d, from, call)
	if len(g.beside) == 0 || len(own.By) > 0 || own.Open != snapshot.OpenNot && own.Open != snapshot.OpenByDefault {
		return own, d
	}
	for _, other := range g.beside {
		if decision := access.Allows(other, from, call); len(decision.By) > 0 {
			return decision, other
		}
	}
	if own.Open == snapshot.OpenByDefault {
		return access.Allows(g.beside[0], from, call), g.beside[0]
	}
	return own, d
}

// onOther says that the policies on another Destination decide about pods that are its own, too; empty for the Destination itself.
func onOther(d, on *snapshot.DestinationPlan) string {
	if on == nil || on == d {
		return ""
	}
	return fmt.Sprintf("no AccessPolicy selects %s, but these pods are also those of %s: ", d.Ref.Name, on.Ref.Name)
}
