package virtualmesh

import (
	"reflect"
	"slices"

	commonv1 "github.com/meshctl/meshctl/engine/api/common/v1"
	networkingv1 "github.com/meshctl/meshctl/engine/api/networking/v1"
	"github.com/meshctl/meshctl/engine/snapshot"
)

// Needs are what users declared that callers call. A VirtualMesh in mode DECLARED has nothing else imported. All lists of
// Destinations are indexes of the Inventory, ascending.
type Needs struct {
	Calls   []*Call
	Detours []*Detour
}

// Call says that callers call Destinations.
type Call struct {
	// Origins has one element.
	Origins []snapshot.Origin
	// Meshes are those of the callers, and Clusters theirs where no mesh is named.
	Meshes   []commonv1.ObjectRef
	Clusters []string
	// Destinations are what they call; Everything: all there are.
	Destinations []int
	Everything   bool
}

// Detour says that requests of callers for Destinations go to others, too or instead.
type Detour struct {
	Origin snapshot.Origin
	// Clusters are those of the callers; nil for all.
	Clusters []string
	// Selected are the Destinations that they call, and Targets those where requests go.
	Selected, Targets []int
}

// Same reports whether two Needs of one Inventory are the same.
func (n *Needs) Same(o *Needs) bool {
	if n == nil || o == nil {
		return n == o
	}
	return slices.EqualFunc(n.Calls, o.Calls, func(a, b *Call) bool { return a == b || reflect.DeepEqual(a, b) }) &&
		slices.EqualFunc(n.Detours, o.Detours, func(a, b *Detour) bool { return a == b || reflect.DeepEqual(a, b) })
}

// Declares reports whether a VirtualMesh imports only what is declared.
func Declares(vm *networkingv1.VirtualMesh) bool {
	return vm.Spec.Federation != nil && vm.Spec.Federation.Mode == networkingv1.FederationModeDeclared
}

// makes reports whether callers of a mesh make the calls. Revisions of one control plane read each other's configuration, so
// that one imports what the other does.
func (c *Call) makes(t *Topology, mesh *snapshot.MeshPlan) bool {
	return slices.Contains(c.Clusters, mesh.Cluster) || slices.ContainsFunc(c.Meshes, func(ref commonv1.ObjectRef) bool {
		m := t.byRef[ref]
		return m != nil && m.Cluster == mesh.Cluster && m.Namespace == mesh.Namespace
	})
}

// concerns reports whether requests of callers in a cluster take the detour.
func (d *Detour) concerns(cluster string) bool {
	return d.Clusters == nil || slices.Contains(d.Clusters, cluster)
}
