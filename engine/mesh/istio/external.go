package istio

import (
	"strings"

	networking "istio.io/api/networking/v1alpha3"

	discoveryv1 "github.com/meshctl/meshctl/engine/api/discovery/v1"
	"github.com/meshctl/meshctl/engine/render"
	"github.com/meshctl/meshctl/engine/snapshot"
)

// External makes a service outside of all clusters known in each mesh that sends
// requests there: to every caller, because routes may be for any of them.
func (Renderer) External(plan *snapshot.ExternalPlan, namespace string) []*snapshot.Object {
	e := plan.Destination.Spec.ExternalService
	spec := &networking.ServiceEntry{
		Hosts: e.Hosts, Addresses: e.Addresses, Location: networking.ServiceEntry_MESH_EXTERNAL,
		Endpoints: externalEndpoints(e),
	}
	for _, p := range e.Ports {
		spec.Ports = append(spec.Ports, &networking.ServicePort{Number: p.Number, Name: p.Name, Protocol: strings.ToUpper(p.Protocol)})
	}
	spec.Resolution = resolution(spec.Endpoints)
	if len(spec.Endpoints) == 0 {
		spec.Resolution = networking.ServiceEntry_DNS // of the hosts
	}
	content := related(render.NewContent(namespace, spec, append([]snapshot.Ref{plan.Ref}, plan.Policies...), plan.Policies), nil, hostNames(spec))
	var out []*snapshot.Object
	places := map[snapshot.Ref]bool{}
	for _, mesh := range plan.Meshes {
		ref := snapshot.Ref{
			Kind: snapshot.ServiceEntry, Cluster: mesh.Cluster, Namespace: mesh.Namespace,
			Name: snapshot.Sanitize("external-" + plan.Ref.Name + "-" + plan.Ref.Namespace),
		}
		if mesh.Dialect == dialect && !places[ref] {
			places[ref] = true
			out = append(out, &snapshot.Object{Ref: ref, Content: content})
		}
	}
	newExporter(nil, plan.Meshes...).export(out)
	return out
}

func externalEndpoints(e *discoveryv1.ExternalService) []*networking.WorkloadEntry {
	var out []*networking.WorkloadEntry
	for _, p := range e.Endpoints {
		out = append(out, &networking.WorkloadEntry{Address: p.Address, Ports: p.Ports})
	}
	return out
}
