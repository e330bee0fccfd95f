package explain

import (
	"slices"

	rbacv1 "github.com/meshctl/meshctl/engine/api/rbac/v1"
	"github.com/meshctl/meshctl/engine/snapshot"
)

// describedKind is a kind of which objects can be described: all that Describe,
// List, Find and Refs know about it.
type describedKind struct {
	kind snapshot.Kind
	// refs lists the objects, ascending.
	refs func() []snapshot.Ref
	has  func(snapshot.Ref) bool
	// describe is called for objects that has reports.
	describe func(snapshot.Ref) Description
	list     func() Table
}

// describedKinds lists the kinds of an Index, in the order of the help.
func describedKinds(x *Index) []describedKind {
	one, all := describing(x), x.Tables(nil)
	return []describedKind{
		{
			snapshot.KubernetesCluster, all.clusterRefs,
			// Issues may name a cluster without the namespace of its registration.
			func(ref snapshot.Ref) bool { return x.clusters[ref.Name] != nil },
			func(ref snapshot.Ref) Description { return one.cluster(x.clusters[ref.Name]) },
			all.Clusters,
		},
		newDescribedKind(snapshot.Mesh, x.meshes, one.mesh, all.Meshes),
		newDescribedKind(snapshot.Workload, x.workloads, one.workload, all.Workloads),
		newDescribedKind(snapshot.Destination, x.destinations, one.destination, all.Destinations),
		newDescribedKind(snapshot.VirtualMesh, x.virtualMeshes, one.virtualMesh, all.VirtualMeshes),
		newDescribedKind(snapshot.VirtualDestination, x.virtualDestinations, one.virtualDestination, all.virtualDestinationTable),
		newDescribedKind(snapshot.TrafficPolicy, x.policies, one.policy, func() Table { return all.policyTable(snapshot.TrafficPolicy) }),
		newDescribedKind(snapshot.AccessPolicy, x.policies, one.policy, func() Table { return all.policyTable(snapshot.AccessPolicy) }),
		newDescribedKind(snapshot.ServiceDependency, x.dependencies, one.dependency, all.serviceDependencyTable),
		newDescribedKind(snapshot.Role, rolesOf(x), func(r *rbacv1.Role) *Role { return describeRole(x, r) }, all.roleTable),
	}
}

// newDescribedKind is a kind whose objects are those of this kind in a map.
func newDescribedKind[P any, D Description](kind snapshot.Kind, objects map[snapshot.Ref]*P, describe func(*P) D, list func() Table) describedKind {
	return describedKind{
		kind: kind,
		refs: func() []snapshot.Ref {
			return slices.DeleteFunc(sortedRefs(objects), func(ref snapshot.Ref) bool { return ref.Kind != kind })
		},
		has:      func(ref snapshot.Ref) bool { return objects[ref] != nil },
		describe: func(ref snapshot.Ref) Description { return describe(objects[ref]) },
		list:     list,
	}
}

// Kinds are those of which objects can be described.
func Kinds() []snapshot.Kind {
	var kinds []snapshot.Kind
	for _, k := range describedKinds(&Index{}) {
		kinds = append(kinds, k.kind)
	}
	return kinds
}

// PolicyKinds are the kinds of the objects that Policies lists, in its order.
func PolicyKinds() []snapshot.Kind {
	return []snapshot.Kind{snapshot.TrafficPolicy, snapshot.AccessPolicy, snapshot.VirtualDestination, snapshot.ServiceDependency}
}

// Refs lists all objects of a kind, ascending.
func (x *Index) Refs(kind snapshot.Kind) []snapshot.Ref {
	if k, ok := x.kinds[kind]; ok {
		return k.refs()
	}
	return nil
}

// Has reports whether there is an object that Describe describes.
func (x *Index) Has(ref snapshot.Ref) bool {
	k, ok := x.kinds[ref.Kind]
	return ok && k.has(ref)
}

// Describe describes an object; nil if there is none.
func (x *Index) Describe(ref snapshot.Ref) Description {
	if !x.Has(ref) {
		return nil
	}
	return x.kinds[ref.Kind].describe(ref)
}

// List is the table of all objects of a kind.
func (x *Index) List(kind snapshot.Kind) Table {
	if k, ok := x.kinds[kind]; ok {
		return k.list()
	}
	return Table{}
}
