// Package istio is all that the engine knows of Istio.
//
//   - detect*.go find its control planes, their settings and sidecars; redact.go leaves out of the settings what may be secret
//   - inspect*.go read what users wrote by hand; reads.go says what is kept of it
//   - the other files turn a Plan into Istio's objects: VirtualService, DestinationRule, ServiceEntry, Gateway, AuthorizationPolicy
//     and EnvoyFilter; and into what agents are asked for. support.go declares what Istio can express
//
// Objects that differ only by the cluster they go to share their content, so
// that a service seen from fifty meshes costs little more than from one.
package istio

import (
	"slices"

	"github.com/meshctl/meshctl/engine/render"
	"github.com/meshctl/meshctl/engine/snapshot"
)

// Renderer renders plans for Istio.
type Renderer struct{}

// Destination renders the objects for one service, in its own mesh and in all that see
// it.
func (Renderer) Destination(plan *snapshot.DestinationPlan, namespace string) []*snapshot.Object {
	if plan.Destination.Spec.KubeService == nil {
		return nil
	}
	r := &builder{plan: plan, namespace: namespace}
	// Kind by kind in the order of Refs, which leaves little to sort.
	r.eachView((*builder).destinationRule)
	r.eachView((*builder).routeFilters)
	r.serviceEntries()
	r.eachView((*builder).virtualService)
	r.authorizationPolicy()
	r.denials()
	r.nameDeclarations()
	meshes := []*snapshot.MeshPlan{plan.Mesh}
	for _, view := range plan.Views {
		meshes = append(meshes, view.Mesh)
	}
	if plan.Federation != nil {
		meshes = append(meshes, plan.Federation.To...)
	}
	newExporter(plan.Destination.Spec.KubeService, meshes...).export(r.objects)
	slices.SortFunc(r.objects, func(a, b *snapshot.Object) int { return a.Ref.Compare(b.Ref) })
	return r.objects
}

// eachView renders one kind of object for each view; the first is that of the service's own
// mesh.
func (r *builder) eachView(render func(r *builder, view *snapshot.View, remote bool)) {
	for i, view := range r.plan.Views {
		if i == 0 || !r.written(view.Mesh) {
			render(r, view, i > 0)
		}
	}
}

// Mesh renders who may call the services of a mesh, and what is asked of its agent.
func (Renderer) Mesh(plan *snapshot.MeshPlan, namespace string) []*snapshot.Object {
	if plan.VirtualMesh == nil {
		return nil
	}
	var objects []*snapshot.Object
	objects = append(objects, globalAccess(plan, namespace)...)
	objects = append(objects, certificates(plan, namespace)...)
	slices.SortFunc(objects, func(a, b *snapshot.Object) int { return a.Ref.Compare(b.Ref) })
	return objects
}

// builder collects the objects of one service.
type builder struct {
	plan      *snapshot.DestinationPlan
	namespace string
	objects   []*snapshot.Object

	services []sharedService
	rules    []sharedRule
	// filtered are the EnvoyFilters that there are.
	filtered map[snapshot.Ref]bool
}

func (r *builder) add(ref snapshot.Ref, content *snapshot.Content) {
	r.objects = append(r.objects, &snapshot.Object{Ref: ref, Content: content})
}

// place is the namespace and name of the objects of a view: the service's own namespace
// in its own cluster, and the mesh's namespace in others. There the name is that of the
// Destination, which is unique.
func (r *builder) place(kind snapshot.Kind, view *snapshot.View, remote bool) snapshot.Ref {
	service := r.plan.Destination.Spec.KubeService.Ref
	if remote {
		return snapshot.Ref{Kind: kind, Cluster: view.Mesh.Cluster, Namespace: view.Mesh.Namespace, Name: r.plan.Ref.Name}
	}
	return snapshot.Ref{Kind: kind, Cluster: service.ClusterName, Namespace: service.Namespace, Name: service.Name}
}

// written reports whether the objects for a mesh were written for another revision of
// the same control plane, to which the service is federated, too.
func (r *builder) written(mesh *snapshot.MeshPlan) bool {
	if !mesh.SharesNamespace || r.plan.Federation == nil {
		return false
	}
	for _, other := range r.plan.Federation.To {
		if other == mesh {
			return false
		}
		if other.Cluster == mesh.Cluster && other.Namespace == mesh.Namespace {
			return true
		}
	}
	return false
}

// content wraps a spec with the labels and annotations that all our objects have.
func (r *builder) content(spec any, federated bool, parents []snapshot.Ref) *snapshot.Content {
	c := render.NewContent(r.namespace, spec, append([]snapshot.Ref{r.plan.Ref}, parents...), parents)
	if federated {
		service := r.plan.Destination.Spec.KubeService.Ref
		c.Annotations[snapshot.FederationAnnotation] = service.Name + "." + service.Namespace + "." + service.ClusterName
	}
	return c
}

// parents are the users' objects that a rendered one follows from.
func (r *builder) parents(federated bool, policies ...snapshot.Ref) []snapshot.Ref {
	out := slices.Clone(policies)
	if federated && r.plan.Federation != nil {
		out = append(out, r.plan.Federation.Origin.Ref)
	}
	slices.SortFunc(out, snapshot.Ref.Compare)
	return slices.Compact(out)
}
