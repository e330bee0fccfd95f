package engine

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	discoveryv1 "github.com/meshctl/meshctl/engine/api/discovery/v1"
	"github.com/meshctl/meshctl/engine/render/istio"
	"github.com/meshctl/meshctl/engine/snapshot"
)

// partMemo keeps the parts of the last output beside what they were made from.
type partMemo struct {
	renderers    []renderer
	destinations group[*snapshot.DestinationPlan, *snapshot.Part]
	meshes       group[*snapshot.MeshPlan, *snapshot.Part]
	externals    group[*snapshot.ExternalPlan, *snapshot.Part]
	filters      group[*snapshot.FilterPlan, *snapshot.Part]
	workloads    group[*discoveryv1.Workload, *snapshot.Part]
	sidecars     group[*snapshot.SidecarPlan, *snapshot.Part]
	virtuals     group[*snapshot.VirtualDestinationPlan, *snapshot.Part]
	all          snapshot.List[*snapshot.Part]
}

// render makes the parts of a plan: one for each destination, external service,
// mesh (and its filters), Sidecar, VirtualDestination and workload.
func (m *partMemo) render(namespace string, plan *snapshot.Plan) snapshot.List[*snapshot.Part] {
	destinations := m.destinations.update(plan.Destinations,
		func(p *snapshot.DestinationPlan) string { return p.Ref.Name },
		func(p *snapshot.DestinationPlan, old *snapshot.Part) *snapshot.Part {
			own := discoveredObject(snapshot.Destination, p.Destination, &p.Destination.Spec, old)
			return newPart("destination/"+p.Ref.Name, own, rendererOf(m.renderers, p.Mesh).destination(p, namespace))
		})
	externals := m.externals.update(snapshot.ListOf(plan.Externals),
		func(p *snapshot.ExternalPlan) string { return p.Ref.Namespace + "/" + p.Ref.Name },
		func(p *snapshot.ExternalPlan, _ *snapshot.Part) *snapshot.Part {
			part := &snapshot.Part{Key: "external/" + p.Ref.Namespace + "/" + p.Ref.Name}
			for _, r := range m.renderers {
				if r.external != nil {
					part.Objects = append(part.Objects, r.external(p, namespace)...)
				}
			}
			return part
		})
	filters := m.filters.update(snapshot.ListOf(plan.Filters),
		func(p *snapshot.FilterPlan) string { return p.Mesh.Ref.Name },
		func(p *snapshot.FilterPlan, _ *snapshot.Part) *snapshot.Part {
			part := &snapshot.Part{Key: "filters/" + p.Mesh.Ref.Name}
			if render := rendererOf(m.renderers, p.Mesh).filters; render != nil {
				part.Objects = render(p, namespace)
			}
			return part
		})
	meshes := m.meshes.update(snapshot.ListOf(plan.Meshes),
		func(p *snapshot.MeshPlan) string { return p.Ref.Name },
		func(p *snapshot.MeshPlan, old *snapshot.Part) *snapshot.Part {
			own := discoveredObject(snapshot.Mesh, p.Mesh, &p.Mesh.Spec, old)
			return newPart("mesh/"+p.Ref.Name, own, rendererOf(m.renderers, p).mesh(p, namespace))
		})
	workloads := m.workloads.update(snapshot.ListOf(plan.Workloads),
		func(w *discoveryv1.Workload) string { return w.Name },
		func(w *discoveryv1.Workload, old *snapshot.Part) *snapshot.Part {
			return newPart("workload/"+w.Name, discoveredObject(snapshot.Workload, w, &w.Spec, old), nil)
		})
	sidecars := m.sidecars.update(snapshot.ListOf(plan.Sidecars),
		func(p *snapshot.SidecarPlan) string { return sidecarKey(p.Ref) },
		func(p *snapshot.SidecarPlan, _ *snapshot.Part) *snapshot.Part {
			return &snapshot.Part{Key: "sidecar/" + sidecarKey(p.Ref), Objects: []*snapshot.Object{istio.Sidecar(p, namespace)}}
		})
	virtuals := m.virtuals.update(snapshot.ListOf(plan.VirtualDestinations),
		func(p *snapshot.VirtualDestinationPlan) string { return p.Ref.Namespace + "," + p.Ref.Name },
		func(p *snapshot.VirtualDestinationPlan, _ *snapshot.Part) *snapshot.Part {
			return &snapshot.Part{Key: "virtualdestination/" + p.Ref.Namespace + "," + p.Ref.Name, Objects: istio.VirtualDestination(p, namespace)}
		})
	if destinations || externals || filters || meshes || workloads || sidecars || virtuals {
		m.all = snapshot.Concat(m.destinations.made, m.externals.made, m.filters.made, m.meshes.made, m.sidecars.made, m.virtuals.made, m.workloads.made)
	}
	return m.all
}

// sidecarKey orders Sidecars as their references are ordered.
func sidecarKey(ref snapshot.Ref) string {
	return ref.Namespace + " " + ref.Name + " " + ref.Cluster
}

func newPart(key string, own *snapshot.Object, more []*snapshot.Object) *snapshot.Part {
	objects := make([]*snapshot.Object, 0, len(more)+1)
	objects = append(append(objects, own), more...)
	return &snapshot.Part{Key: key, Objects: objects}
}

// discoveredObject is a discovered object as one to have on the management
// plane; the one of the part before, if it says the same. Spec points into o:
// equal pointers are the same object.
func discoveredObject(kind snapshot.Kind, o metav1.Object, spec any, old *snapshot.Part) *snapshot.Object {
	if old != nil {
		for _, was := range old.Objects {
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
