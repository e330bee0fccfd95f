package policy

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	kubenetworkingv1 "k8s.io/api/networking/v1"

	discoveryv1 "github.com/meshctl/meshctl/engine/api/discovery/v1"
	"github.com/meshctl/meshctl/engine/inventory"
	"github.com/meshctl/meshctl/engine/netpolicy"
	"github.com/meshctl/meshctl/engine/snapshot"
)

// network is what NetworkPolicies let through, with the lists that it was made from.
type network struct {
	of   *netpolicy.Network
	from []networkLists
}

// networkLists are those of one cluster.
type networkLists struct {
	denied     []snapshot.Kind
	policies   []*kubenetworkingv1.NetworkPolicy
	namespaces []*corev1.Namespace
	pods       []*corev1.Pod
}

// next is the network of some clusters: the same one if no list changed that matters.
func (n *network) next(clusters []*snapshot.Cluster) network {
	var from []networkLists
	if slices.ContainsFunc(clusters, func(c *snapshot.Cluster) bool { return len(c.NetworkPolicies) > 0 }) {
		for _, c := range clusters {
			from = append(from, networkLists{c.Denied, c.NetworkPolicies, c.Namespaces, c.Pods})
		}
	}
	if slices.EqualFunc(n.from, from, networkLists.same) {
		return *n
	}
	return network{netpolicy.NewNetwork(clusters), from}
}

func (l networkLists) same(other networkLists) bool {
	return slices.Equal(l.denied, other.denied) && snapshot.SameSlice(l.policies, other.policies) && snapshot.SameSlice(l.namespaces, other.namespaces) && snapshot.SameSlice(l.pods, other.pods)
}

// networkRecord is what was found about a policy in a network.
type networkRecord struct {
	of     *netpolicy.Network
	issues []snapshot.Issue
}

// unreached are the issues of an AccessPolicy that allows callers of whom NetworkPolicies let none through to a service.
func unreached(r *reconciler, b *accessBinding) []snapshot.Issue {
	n := r.network.of
	if n == nil || b.rule.Denies || len(b.policy.Spec.SourceSelector) == 0 {
		return nil
	}
	if b.network.of == n {
		return b.network.issues
	}
	b.network = networkRecord{of: n}
	type found struct {
		by    []snapshot.Ref
		first string
		count int
	}
	all := map[string]*found{}
	for _, i := range b.selected {
		by := ending(r, n, b, i)
		if len(by) == 0 {
			continue
		}
		key := refsText(by)
		if all[key] == nil {
			all[key] = &found{by: by, first: inventory.ServiceName(r.env.inv.Destinations[i].Spec.KubeService.Ref)}
		}
		all[key].count++
	}
	for _, key := range slices.Sorted(maps.Keys(all)) {
		services := "pods of " + all[key].first
		if more := all[key].count - 1; more > 0 {
			services += fmt.Sprintf(" and %d more", more)
		}
		b.network.issues = append(b.network.issues, snapshot.Warnf(snapshot.HandWritten, "add a rule for the callers to it, or allow them no more",
			"%s: where the network of the cluster enforces it, none of the callers gets through to %s", key, services).On(b.ref, snapshot.Ref{}).CausedBy(all[key].by[0]))
	}
	return b.network.issues
}

// ending are the NetworkPolicies by which none of the listed callers of a policy gets through to a Destination, ascending.
func ending(r *reconciler, n *netpolicy.Network, b *accessBinding, i int) (by []snapshot.Ref) {
	d := r.states[i].plan
	if d == nil || d.Destination.Spec.KubeService == nil {
		return nil
	}
	service, ports := n.To(d), podPorts(d.Destination.Spec.KubeService)
	for _, ref := range b.workloads.First {
		at, found := slices.BinarySearchFunc(r.env.inv.Workloads, ref.Name, func(w *discoveryv1.Workload, name string) int { return strings.Compare(w.Name, name) })
		if !found {
			continue
		}
		w := r.env.inv.Workloads[at]
		ends := service.From(w, r.env.topology.Mesh(w.Spec.Mesh), ports)
		ends = slices.DeleteFunc(ends, func(f netpolicy.Finding) bool { return f.Verdict != netpolicy.Stays })
		if len(ends) == 0 {
			return nil
		}
		by = append(by, ends[0].By...)
	}
	slices.SortFunc(by, snapshot.Ref.Compare)
	return slices.Compact(by)
}

func refsText(refs []snapshot.Ref) string {
	names := make([]string, len(refs))
	for i, ref := range refs {
		names[i] = ref.String()
	}
	return strings.Join(names, ", ")
}
