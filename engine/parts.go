package engine

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	discoveryv1 "github.com/meshctl/meshctl/engine/api/discovery/v1"
	"github.com/meshctl/meshctl/engine/render"
	"github.com/meshctl/meshctl/engine/snapshot"
)

// partCache keeps the parts of the last output beside what they were made from.
type partCache struct {
	kinds        []Mesh
	destinations parts[*snapshot.DestinationPlan]
	meshes       parts[*snapshot.MeshPlan]
	externals    parts[*snapshot.ExternalPlan]
	filters      parts[*snapshot.FilterPlan]
	passages     parts[*snapshot.PassagePlan]
	workloads    parts[*discoveryv1.Workload]
	sidecars     parts[*snapshot.SidecarPlan]
	trials       parts[*snapshot.TrialPlan]
	virtuals     parts[*snapshot.VirtualDestinationPlan]
	all          snapshot.List[*snapshot.Part]
}

// parts are made one for each plan.
type parts[P comparable] struct {
	snapshot.Derived[P, *snapshot.Part]
}

// update makes the parts of plans, which are ascending by key, and reports whether
// any part is new or gone. The part before is nil if there was none.
func (c *parts[P]) update(plans snapshot.List[P], key func(P) string, objects func(plan P, before *snapshot.Part) []*snapshot.Object) bool {
	return c.Update(plans, key, func(plan P, before *snapshot.Part) *snapshot.Part {
		return &snapshot.Part{Key: key(plan), Objects: objects(plan, before)}
	})
}

// render makes the parts of a plan: one for each destination, external service,
// mesh (and its filters), gateway, Sidecar, trial, VirtualDestination and
// workload.
func (c *partCache) render(namespace string, plan *snapshot.Plan) snapshot.List[*snapshot.Part] {
	changed := c.destinations.update(plan.Destinations,
		func(p *snapshot.DestinationPlan) string { return "destination/" + p.Ref.Name },
		func(p *snapshot.DestinationPlan, before *snapshot.Part) []*snapshot.Object {
			own := discoveredObject(snapshot.Destination, p.Destination, &p.Destination.Spec, before)
			return append([]*snapshot.Object{own}, c.rendererOf(p.Mesh).Destination(p, namespace)...)
		})
	changed = c.externals.update(snapshot.ListOf(plan.Externals),
		func(p *snapshot.ExternalPlan) string { return "external/" + p.Ref.Namespace + "/" + p.Ref.Name },
		func(p *snapshot.ExternalPlan, _ *snapshot.Part) []*snapshot.Object {
			return c.renderAll(func(r render.Renderer) []*snapshot.Object { return r.External(p, namespace) })
		}) || changed
	changed = c.filters.update(snapshot.ListOf(plan.Filters),
		func(p *snapshot.FilterPlan) string { return "filters/" + p.Mesh.Ref.Name },
		func(p *snapshot.FilterPlan, _ *snapshot.Part) []*snapshot.Object {
			return c.rendererOf(p.Mesh).Filters(p, namespace)
		}) || changed
	changed = c.passages.update(snapshot.ListOf(plan.Passages),
		func(p *snapshot.PassagePlan) string { return "passage/" + p.Gateway.Destination.Name },
		func(p *snapshot.PassagePlan, _ *snapshot.Part) []*snapshot.Object {
			return c.rendererOf(p.Mesh).Passage(p, namespace)
		}) || changed
	changed = c.meshes.update(snapshot.ListOf(plan.Meshes),
		func(p *snapshot.MeshPlan) string { return "mesh/" + p.Ref.Name },
		func(p *snapshot.MeshPlan, before *snapshot.Part) []*snapshot.Object {
			own := discoveredObject(snapshot.Mesh, p.Mesh, &p.Mesh.Spec, before)
			return append([]*snapshot.Object{own}, c.rendererOf(p).Mesh(p, namespace)...)
		}) || changed
	changed = c.sidecars.update(snapshot.ListOf(plan.Sidecars),
		// The key orders Sidecars as their references are ordered.
		func(p *snapshot.SidecarPlan) string {
			return "sidecar/" + p.Ref.Namespace + " " + p.Ref.Name + " " + p.Ref.Cluster
		},
		func(p *snapshot.SidecarPlan, _ *snapshot.Part) []*snapshot.Object {
			return c.rendererOf(p.Mesh).Sidecar(p, namespace)
		}) || changed
	changed = c.trials.update(snapshot.ListOf(plan.Trials),
		func(p *snapshot.TrialPlan) string { return "trial/" + p.Key() },
		func(p *snapshot.TrialPlan, _ *snapshot.Part) []*snapshot.Object {
			return c.rendererOf(p.Mesh).Trial(p, namespace)
		}) || changed
	changed = c.virtuals.update(snapshot.ListOf(plan.VirtualDestinations),
		func(p *snapshot.VirtualDestinationPlan) string {
			return "virtualdestination/" + p.Ref.Namespace + "," + p.Ref.Name + "," + p.Ref.Cluster
		},
		func(p *snapshot.VirtualDestinationPlan, _ *snapshot.Part) []*snapshot.Object {
			return c.renderAll(func(r render.Renderer) []*snapshot.Object { return r.VirtualDestination(p, namespace) })
		}) || changed
	changed = c.workloads.update(snapshot.ListOf(plan.Workloads),
		func(w *discoveryv1.Workload) string { return "workload/" + w.Name },
		func(w *discoveryv1.Workload, before *snapshot.Part) []*snapshot.Object {
			return []*snapshot.Object{discoveredObject(snapshot.Workload, w, &w.Spec, before)}
		}) || changed
	if changed {
		c.all = snapshot.Concat(c.destinations.Values, c.externals.Values, c.filters.Values, c.meshes.Values, c.passages.Values,
			c.sidecars.Values, c.trials.Values, c.virtuals.Values, c.workloads.Values)
	}
	return c.all
}

// discoveredObject is a discovered object as one to have on the management
// plane; the one of the part before, if it says the same. Spec points into o:
// equal pointers are the same object.
func discoveredObject(kind snapshot.Kind, o metav1.Object, spec any, before *snapshot.Part) *snapshot.Object {
	if before != nil {
		for _, was := range before.Objects {
			if was.Ref.Kind == kind && was.Content.Spec == spec {
				return was
			}
		}
	}
	return &snapshot.Object{
		Ref:     snapshot.RefOf(kind, o),
		Content: &snapshot.Content{Labels: o.GetLabels(), Annotations: o.GetAnnotations(), Spec: spec},
	}
}
