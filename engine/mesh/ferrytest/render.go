package ferrytest

import (
	"slices"

	"github.com/meshctl/meshctl/engine/render"
	"github.com/meshctl/meshctl/engine/snapshot"
)

// Renderer makes one Crossing of every plan, which says in words what the plan asks for.
type Renderer struct{}

var _ render.Renderer = Renderer{}

// crossing is a Crossing in a cluster of a mesh. It exists for parents.
func crossing(mesh *snapshot.MeshPlan, name, namespace string, says []string, parents ...snapshot.Ref) *snapshot.Object {
	spec := map[string]any{"says": slices.Clone(says)}
	return &snapshot.Object{
		Ref:     snapshot.Ref{Kind: Crossing, Cluster: mesh.Cluster, Namespace: mesh.Namespace, Name: name},
		Content: render.NewContent(namespace, spec, parents, parents),
	}
}

// Dialect implements render.Renderer.
func (Renderer) Dialect() *snapshot.Dialect { return dialect }

// Destination implements render.Renderer.
func (Renderer) Destination(p *snapshot.DestinationPlan, namespace string) []*snapshot.Object {
	var says []string
	for _, a := range p.Traffic {
		says = append(says, "traffic "+a.Policy.Name)
	}
	for _, a := range p.Access {
		for _, s := range a.Sources {
			for _, id := range s.Identities {
				says = append(says, "from "+id.TrustDomain+"/"+id.ServiceAccount)
			}
		}
	}
	if p.Denials != nil {
		for _, a := range p.Denials.Policies {
			says = append(says, "deny "+a.Origin.Ref.Name)
		}
	}
	return []*snapshot.Object{crossing(p.Mesh, "service-"+p.Destination.Spec.KubeService.Ref.Name, namespace, says)}
}

// Mesh implements render.Renderer.
func (Renderer) Mesh(p *snapshot.MeshPlan, namespace string) []*snapshot.Object {
	if p.DenyByDefault == nil {
		return nil
	}
	return []*snapshot.Object{crossing(p, "deny", namespace, []string{"by " + p.DenyByDefault.Ref.Name})}
}

// Passage implements render.Renderer.
func (Renderer) Passage(p *snapshot.PassagePlan, namespace string) []*snapshot.Object {
	return []*snapshot.Object{crossing(p.Mesh, "passage-"+p.Gateway.Service.Name, namespace, p.Hosts)}
}

// Filters implements render.Renderer.
func (Renderer) Filters(p *snapshot.FilterPlan, namespace string) []*snapshot.Object {
	return []*snapshot.Object{crossing(p.Mesh, "filters", namespace, []string{"for " + p.Policies[0].Name}, p.Policies...)}
}

// Sidecar implements render.Renderer.
func (Renderer) Sidecar(p *snapshot.SidecarPlan, namespace string) []*snapshot.Object {
	var names []string
	for _, h := range p.Egress.Hosts {
		if len(h.Origins) > 0 { // else every proxy needs it
			names = append(names, h.Host)
		}
	}
	return []*snapshot.Object{crossing(p.Mesh, "egress-"+p.Ref.Name, namespace, names)}
}

// Trial implements render.Renderer: a Ferry tries nothing.
func (Renderer) Trial(*snapshot.TrialPlan, string) []*snapshot.Object { return nil }

// External implements render.Renderer.
func (Renderer) External(p *snapshot.ExternalPlan, namespace string) []*snapshot.Object {
	var out []*snapshot.Object
	for _, mesh := range p.Meshes {
		if mesh.Dialect == dialect {
			out = append(out, crossing(mesh, "external-"+p.Ref.Name, namespace, p.Destination.Spec.ExternalService.Hosts))
		}
	}
	return out
}

// VirtualDestination implements render.Renderer.
func (Renderer) VirtualDestination(p *snapshot.VirtualDestinationPlan, namespace string) []*snapshot.Object {
	var out []*snapshot.Object
	for _, view := range p.Views {
		if view.Mesh.Dialect == dialect && len(view.Priorities) > 0 {
			out = append(out, crossing(view.Mesh, "virtual-"+p.Ref.Name, namespace, []string{p.Hostname}, p.Ref))
		}
	}
	return out
}

// Widen implements render.Renderer: a Crossing has no two versions at once.
func (Renderer) Widen(snapshot.Kind, any, any) any { return nil }
