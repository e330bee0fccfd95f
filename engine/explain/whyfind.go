package explain

import (
	"slices"
	"strings"

	"github.com/meshctl/meshctl/engine/snapshot"
)

// FindCalled lists the Destinations and VirtualDestinations that the callers of a workload may
// mean by a name: a host name as they know it, or else what Find takes. Of several with that
// name, it is the one that a short name leads to in the callers' namespace or cluster.
func (x *Index) FindCalled(from snapshot.Ref, name string) []snapshot.Ref {
	workload := x.workloads[from]
	if workload == nil {
		return nil
	}
	if mesh := x.meshOf(workload); mesh != nil {
		if called := x.hosts(mesh, name); len(called) > 0 {
			return called
		}
	}
	found := append(x.Find(snapshot.Destination, name), x.Find(snapshot.VirtualDestination, name)...)
	if alias := FindAlias(x, from, name); alias != nil && !slices.ContainsFunc(found, func(ref snapshot.Ref) bool { return ref.Name == name }) {
		return alias.To
	}
	k := workload.Spec.Kubernetes
	if len(found) < 2 || k == nil {
		return found
	}
	near := []string{"." + k.Controller.ClusterName}
	if !strings.Contains(name, ".") {
		near = []string{"." + k.Controller.Namespace + "." + k.Controller.ClusterName, near[0]}
	}
	for _, suffix := range near {
		nearest := slices.DeleteFunc(slices.Clone(found), func(ref snapshot.Ref) bool { return !strings.HasSuffix(x.source(ref), suffix) })
		if len(nearest) == 1 {
			return nearest
		}
	}
	return found
}

// hosts lists what callers in a mesh know by a host name.
func (x *Index) hosts(mesh *snapshot.MeshPlan, host string) (found []snapshot.Ref) {
	for d := range x.state.Plan.Destinations.All() {
		if d.Mesh != nil && reaches(mesh, d) && hostFrom(mesh, d) == host {
			found = append(found, d.Ref)
		}
	}
	for _, v := range x.state.Plan.VirtualDestinations {
		if v.Hostname == host {
			found = append(found, v.Ref)
		}
	}
	return found
}
