package istio

import (
	networking "istio.io/api/networking/v1alpha3"

	"github.com/meshctl/meshctl/engine/render"
	"github.com/meshctl/meshctl/engine/snapshot"
)

// gateways passes connections from other clusters on to the service that their SNI
// names; the TLS session is between the two sidecars.
func gateways(plan *snapshot.MeshPlan, namespace string) []*snapshot.Object {
	var out []*snapshot.Object
	vm := snapshot.RefOf(snapshot.VirtualMesh, plan.VirtualMesh)
	for _, gw := range plan.Gateways {
		if gw.Shared || plan.Limited {
			continue
		}
		spec := &networking.Gateway{
			Selector: gw.Selector,
			Servers: []*networking.Server{{
				Port:  &networking.Port{Number: gw.ContainerPort, Name: "tls", Protocol: "TLS"},
				Hosts: passable(plan),
				Tls:   &networking.ServerTLSSettings{Mode: networking.ServerTLSSettings_AUTO_PASSTHROUGH},
			}},
		}
		out = append(out, &snapshot.Object{
			Ref: snapshot.Ref{
				Kind: snapshot.Gateway, Cluster: plan.Cluster, Namespace: plan.Namespace,
				Name: snapshot.Sanitize(gw.Destination.Name + "-" + gw.Destination.Namespace),
			},
			Content: render.NewContent(namespace, spec, []snapshot.Ref{vm}, []snapshot.Ref{vm}),
		})
	}
	return out
}

// passable are the hosts that are served in a mesh: its own services, and
// VirtualDestinations, whose names for this purpose have the pods of the mesh as
// endpoints. With the whole suffix, a gateway would pass connections on to services of
// other meshes as well: Istio adds a filter chain for each host that it knows
// (pilot/pkg/networking/core, builtAutoPassthroughFilterChains).
func passable(plan *snapshot.MeshPlan) []string {
	return []string{
		"*.svc." + plan.Cluster + "." + plan.HostnameSuffix,
		"*." + snapshot.PassedAsMark + "." + plan.HostnameSuffix,
	}
}
