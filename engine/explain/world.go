package explain

import (
	"slices"
	"strings"

	discoveryv1 "github.com/meshctl/meshctl/engine/api/discovery/v1"
	"github.com/meshctl/meshctl/engine/snapshot"
)

// World is a State made ready for questions.
type World struct {
	state        *snapshot.State
	clusters     map[string]*snapshot.Cluster
	meshes       map[snapshot.Ref]*snapshot.MeshPlan
	destinations map[snapshot.Ref]*snapshot.DestinationPlan
	workloads    map[snapshot.Ref]*discoveryv1.Workload
	virtual      map[snapshot.Ref]*snapshot.VirtualMeshPlan
	dependencies map[snapshot.Ref]*snapshot.DependencyPlan
	failover     map[snapshot.Ref]*snapshot.VirtualDestinationPlan
	policies     map[snapshot.Ref]*snapshot.PolicyPlan
	issues       map[snapshot.Ref][]snapshot.Issue
	statuses     map[snapshot.Ref]*snapshot.Status
	// stored: the statuses are those that a server has written; see NewLive.
	stored bool
	// unread: the clusters themselves were not read; see NewStored.
	unread bool
	// waiting are policies and VirtualMeshes of which the server has not taken
	// up the present version.
	waiting map[snapshot.Ref]bool
}

// New makes a State ready for questions. It does not change it.
func New(state *snapshot.State) *World {
	w := &World{
		state:        state,
		clusters:     map[string]*snapshot.Cluster{},
		meshes:       map[snapshot.Ref]*snapshot.MeshPlan{},
		destinations: map[snapshot.Ref]*snapshot.DestinationPlan{},
		workloads:    map[snapshot.Ref]*discoveryv1.Workload{},
		virtual:      map[snapshot.Ref]*snapshot.VirtualMeshPlan{},
		dependencies: map[snapshot.Ref]*snapshot.DependencyPlan{},
		failover:     map[snapshot.Ref]*snapshot.VirtualDestinationPlan{},
		policies:     make(map[snapshot.Ref]*snapshot.PolicyPlan, len(state.Plan.Policies)),
		issues:       map[snapshot.Ref][]snapshot.Issue{},
		statuses:     map[snapshot.Ref]*snapshot.Status{},
	}
	for _, c := range state.Input.Clusters {
		w.clusters[c.Name] = c
	}
	for _, m := range state.Plan.Meshes {
		w.meshes[m.Ref] = m
	}
	for d := range state.Plan.Destinations.All() {
		w.destinations[d.Ref] = d
	}
	for _, v := range state.Plan.VirtualMeshes {
		w.virtual[v.Ref] = v
	}
	for _, p := range state.Plan.Dependencies {
		w.dependencies[p.Ref] = p
	}
	for _, v := range state.Plan.VirtualDestinations {
		w.failover[v.Ref] = v
	}
	for _, p := range state.Plan.Policies {
		w.policies[p.Ref] = p
	}
	for _, o := range state.Plan.Workloads {
		w.workloads[snapshot.RefOf(snapshot.Workload, o)] = o
	}
	for _, issue := range state.Output.Issues {
		w.issues[issue.Ref] = append(w.issues[issue.Ref], issue)
		if issue.Target != (snapshot.Ref{}) && issue.Target != issue.Ref {
			w.issues[issue.Target] = append(w.issues[issue.Target], issue)
		}
	}
	for s := range state.Output.Statuses.All() {
		w.statuses[s.Ref] = s
	}
	w.inheritIssues()
	return w
}

// Kinds are those that can be described.
func Kinds() []snapshot.Kind {
	return []snapshot.Kind{
		snapshot.KubernetesCluster, snapshot.Mesh, snapshot.Workload, snapshot.Destination, snapshot.VirtualMesh,
		snapshot.VirtualDestination, snapshot.TrafficPolicy, snapshot.AccessPolicy, snapshot.ServiceDependency,
	}
}

// Refs lists all objects of a kind, ascending.
func (w *World) Refs(kind snapshot.Kind) []snapshot.Ref {
	var refs []snapshot.Ref
	switch kind {
	case snapshot.Mesh:
		refs = keys(w.meshes)
	case snapshot.Workload:
		refs = keys(w.workloads)
	case snapshot.Destination:
		refs = keys(w.destinations)
	case snapshot.VirtualMesh:
		refs = keys(w.virtual)
	case snapshot.VirtualDestination:
		refs = keys(w.failover)
	case snapshot.ServiceDependency:
		refs = keys(w.dependencies)
	case snapshot.KubernetesCluster:
		refs = w.clusterRefs()
	case snapshot.TrafficPolicy, snapshot.AccessPolicy:
		for _, ref := range keys(w.policies) {
			if ref.Kind == kind {
				refs = append(refs, ref)
			}
		}
	}
	return refs
}

func keys[T any](m map[snapshot.Ref]T) []snapshot.Ref {
	refs := make([]snapshot.Ref, 0, len(m))
	for ref := range m {
		refs = append(refs, ref)
	}
	slices.SortFunc(refs, snapshot.Ref.Compare)
	return refs
}

// Find lists the objects of a kind that people may mean by a name: the one of
// exactly that name, or else those of whose source it is the name, written
// reviews, reviews.bookinfo or reviews.bookinfo.cluster-1.
func (w *World) Find(kind snapshot.Kind, name string) []snapshot.Ref {
	var exact, called []snapshot.Ref
	for _, ref := range w.Refs(kind) {
		if ref.Name == name || ref.Namespace+"/"+ref.Name == name {
			exact = append(exact, ref)
		}
		source := w.source(ref)
		if source == name || strings.HasPrefix(source, name+".") {
			called = append(called, ref)
		}
	}
	if len(exact) > 0 {
		return exact
	}
	return called
}

// source spells <name>.<namespace>.<cluster> of what an object was made for.
func (w *World) source(ref snapshot.Ref) string {
	switch ref.Kind {
	case snapshot.Destination:
		if d := w.destinations[ref].Destination; d.Spec.KubeService != nil {
			s := d.Spec.KubeService.Ref
			return s.Name + "." + s.Namespace + "." + s.ClusterName
		}
	case snapshot.Workload:
		if k := w.workloads[ref].Spec.Kubernetes; k != nil {
			return k.Controller.Name + "." + k.Controller.Namespace + "." + k.Controller.ClusterName
		}
	}
	return ref.Name
}

// Describe answers all there is to say about one object; nil if there is none
// of that name. The Ref is one that Refs or Find gave.
func (w *World) Describe(ref snapshot.Ref) Value {
	switch ref.Kind {
	case snapshot.Mesh:
		if m := w.meshes[ref]; m != nil {
			return w.mesh(m)
		}
	case snapshot.Workload:
		if o := w.workloads[ref]; o != nil {
			return w.workload(ref, o)
		}
	case snapshot.Destination:
		if d := w.destinations[ref]; d != nil {
			return w.destination(d)
		}
	case snapshot.VirtualMesh:
		if v := w.virtual[ref]; v != nil {
			return w.virtualMesh(v)
		}
	case snapshot.VirtualDestination:
		if v := w.failover[ref]; v != nil {
			return w.virtualDestination(v)
		}
	case snapshot.ServiceDependency:
		if p := w.dependencies[ref]; p != nil {
			return w.dependency(p)
		}
	case snapshot.KubernetesCluster:
		if c := w.cluster(ref.Name); c != nil {
			return c
		}
	case snapshot.TrafficPolicy, snapshot.AccessPolicy:
		if p := w.policy(ref); p != nil {
			return p
		}
	}
	return nil
}

// Has reports whether there is an object that Describe can tell of.
func (w *World) Has(ref snapshot.Ref) bool {
	switch ref.Kind {
	case snapshot.Mesh:
		return w.meshes[ref] != nil
	case snapshot.Workload:
		return w.workloads[ref] != nil
	case snapshot.Destination:
		return w.destinations[ref] != nil
	case snapshot.VirtualMesh:
		return w.virtual[ref] != nil
	case snapshot.KubernetesCluster:
		return w.clusters[ref.Name] != nil
	case snapshot.TrafficPolicy, snapshot.AccessPolicy:
		return w.policies[ref] != nil
	case snapshot.ServiceDependency:
		return w.dependencies[ref] != nil
	case snapshot.VirtualDestination:
		return w.failover[ref] != nil
	}
	return false
}

// frozen says why a cluster is frozen; empty if it is not.
func (w *World) frozen(cluster string) string {
	if w.unread {
		return w.storedFrozen(cluster)
	}
	c := w.clusters[cluster]
	switch {
	case c == nil:
		return "not registered"
	case !c.Frozen():
		return ""
	case c.Reason == "":
		return c.Sync.String()
	}
	return c.Sync.String() + ": " + c.Reason
}

// clusterOf is the cluster of a Destination's Service; empty if it has none.
func (w *World) clusterOf(destination snapshot.Ref) string {
	if d := w.destinations[destination]; d != nil && d.Destination.Spec.KubeService != nil {
		return d.Destination.Spec.KubeService.Ref.ClusterName
	}
	return ""
}
