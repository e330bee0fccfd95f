package explain

import (
	"fmt"
	"slices"
	"strings"

	discoveryv1 "github.com/meshctl/meshctl/engine/api/discovery/v1"
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
		if called := x.hosts(mesh, workload, name); len(called) > 0 {
			return called
		}
		if called := hostsOfOthers(x, name); len(called) > 0 {
			return called[:1] // of whatever namespace: these callers know none of them
		}
		if called := withdrawnHosts(x, mesh, name); len(called) > 0 {
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

// hosts lists what callers in a mesh know by a host name. Callers may be nil: then what one namespace alone sees is left out.
func (x *Index) hosts(mesh *snapshot.MeshPlan, callers *discoveryv1.Workload, host string) (found []snapshot.Ref) {
	for d := range x.state.Plan.Destinations.All() {
		if d.Mesh != nil && reaches(mesh, d) && hostFrom(mesh, d) == host {
			found = append(found, d.Ref)
		}
	}
	for _, v := range x.state.Plan.VirtualDestinations {
		switch {
		case v.Hostname != host:
		case !v.OfNamespace():
			found = append(found, v.Ref)
		case callers != nil && seesVirtual(callers, v) && v.Sees(mesh):
			return []snapshot.Ref{v.Ref} // what has the name elsewhere is not for these callers
		}
	}
	return found
}

// hostsOfOthers lists the VirtualDestinations that each have a host name for one namespace alone.
func hostsOfOthers(x *Index, host string) (found []snapshot.Ref) {
	for _, v := range x.state.Plan.VirtualDestinations {
		if v.OfNamespace() && v.Hostname == host {
			found = append(found, v.Ref)
		}
	}
	return found
}

// withdrawnHosts lists the Destinations that callers in a mesh do not know by a host name at present, though it is the one that they
// have or had while they are federated.
func withdrawnHosts(x *Index, mesh *snapshot.MeshPlan, host string) (found []snapshot.Ref) {
	for d := range x.state.Plan.Destinations.All() {
		k := d.Destination.Spec.KubeService
		if d.Mesh == nil || k == nil || reaches(mesh, d) {
			continue
		}
		was := d.Destination.Status.AppliedFederation
		wouldBe := k.Ref.Name + "." + k.Ref.Namespace + ".svc." + k.Ref.ClusterName + "." + d.Mesh.HostnameSuffix
		if was != nil && was.FederatedHostname == host || d.Mesh.VirtualMesh != nil && wouldBe == host {
			found = append(found, d.Ref)
		}
	}
	return found
}

// notAtPresent says why no service of the mesh of a Destination is federated at present; empty if that is not because of its gateways.
func notAtPresent(x *Index, d *snapshot.DestinationPlan) string {
	if d.Federation != nil || len(d.Mesh.Gateways) > 0 {
		return ""
	}
	for _, issue := range x.issues[d.Mesh.Ref] {
		if issue.Ref.Kind == snapshot.VirtualMesh && issue.Severity == snapshot.Error && strings.HasPrefix(string(issue.Code), "Gateway") {
			return "it is not federated at present: " + snapshot.Sentences(issue.Message, issue.Hint)
		}
	}
	return ""
}

// FindCaller lists the workloads that people may mean by a name of who sends requests: those that Find takes, or else the only workload
// of the services of that name.
func FindCaller(x *Index, name string) []snapshot.Ref {
	if found := x.Find(snapshot.Workload, name); len(found) > 0 {
		return found
	}
	var out []snapshot.Ref
	for _, service := range x.Find(snapshot.Destination, name) {
		for _, ref := range x.Refs(snapshot.Workload) {
			if k := x.workloads[ref].Spec.Kubernetes; k != nil && backs(k, x.destinations[service]) && !slices.Contains(out, ref) {
				out = append(out, ref)
			}
		}
	}
	return out
}

// NoteElsewhere adds to an answer that the short name by which its service was asked for leads nowhere, or to another one, from the
// cluster of the callers: there, only services of their own cluster have short names.
func NoteElsewhere(x *Index, w *Why, name string) {
	workload, d := x.workloads[w.From], x.destinations[w.To]
	if workload == nil || workload.Spec.Kubernetes == nil || d == nil || d.Destination.Spec.KubeService == nil || w.Host == "" || name == w.Host {
		return
	}
	from, to := workload.Spec.Kubernetes.Controller, d.Destination.Spec.KubeService.Ref
	if from.ClusterName == to.ClusterName && (from.Namespace == to.Namespace || name != to.Name) {
		return
	}
	if name != to.Name && name != to.Name+"."+to.Namespace {
		return // it names the cluster, or is a name of an object, which nobody calls
	}
	w.Notes = append(w.Notes, fmt.Sprintf("a call to http://%s from namespace %s of %s does not lead there: there is no service of that name; this is the answer for http://%s",
		name, from.Namespace, from.ClusterName, w.Host))
}
