package render

import "github.com/meshctl/meshctl/engine/snapshot"

// Renderer turns plans into the objects of one kind of mesh. Each method takes
// one plan and the management namespace, which is the value of owner labels, and
// returns the objects that the plan needs in meshes of this kind, ascending by
// Ref. It must not change the plan, and equal plans give equal objects.
//
// A renderer embeds Nothing, and has methods of its own for what its meshes
// support.
type Renderer interface {
	// Dialect declares what the kind of mesh supports.
	Dialect() *snapshot.Dialect
	// Destination, Mesh, Passage, Filters, Sidecar and Trial are called with plans
	// of the renderer's own kind of mesh only.
	Destination(plan *snapshot.DestinationPlan, namespace string) []*snapshot.Object
	Mesh(plan *snapshot.MeshPlan, namespace string) []*snapshot.Object
	Passage(plan *snapshot.PassagePlan, namespace string) []*snapshot.Object
	Filters(plan *snapshot.FilterPlan, namespace string) []*snapshot.Object
	Sidecar(plan *snapshot.SidecarPlan, namespace string) []*snapshot.Object
	Trial(plan *snapshot.TrialPlan, namespace string) []*snapshot.Object
	// External and VirtualDestination are called with every plan: one plan may be
	// about meshes of several kinds, of which the renderer takes its own.
	External(plan *snapshot.ExternalPlan, namespace string) []*snapshot.Object
	VirtualDestination(plan *snapshot.VirtualDestinationPlan, namespace string) []*snapshot.Object
	// Widen returns the spec after, of an object of a kind of the renderer, with all that only before provides; nil if no spec can
	// have both. It is written while proxies use what after has not.
	Widen(kind snapshot.Kind, before, after any) any
}

// Nothing renders every plan as no objects.
type Nothing struct{}

// Destination is part of Renderer.
func (Nothing) Destination(*snapshot.DestinationPlan, string) []*snapshot.Object { return nil }

// Mesh is part of Renderer.
func (Nothing) Mesh(*snapshot.MeshPlan, string) []*snapshot.Object { return nil }

// Passage is part of Renderer.
func (Nothing) Passage(*snapshot.PassagePlan, string) []*snapshot.Object { return nil }

// Filters is part of Renderer.
func (Nothing) Filters(*snapshot.FilterPlan, string) []*snapshot.Object { return nil }

// Sidecar is part of Renderer.
func (Nothing) Sidecar(*snapshot.SidecarPlan, string) []*snapshot.Object { return nil }

// Trial is part of Renderer.
func (Nothing) Trial(*snapshot.TrialPlan, string) []*snapshot.Object { return nil }

// External is part of Renderer.
func (Nothing) External(*snapshot.ExternalPlan, string) []*snapshot.Object { return nil }

// Widen is part of Renderer.
func (Nothing) Widen(snapshot.Kind, any, any) any { return nil }

// VirtualDestination is part of Renderer.
func (Nothing) VirtualDestination(*snapshot.VirtualDestinationPlan, string) []*snapshot.Object {
	return nil
}
