package istio

import (
	"slices"

	networking "istio.io/api/networking/v1alpha3"

	"github.com/meshctl/meshctl/engine/render"
	"github.com/meshctl/meshctl/engine/snapshot"
)

// Passage passes connections from other clusters on to the service that their SNI names; the
// TLS session is between the two sidecars.
//
// The hosts have no wildcard. Istio adds a filter chain for each host that it knows and that the
// server has, in whichever namespace it was defined: for this mode, it does not look at the namespace
// before a host (pilot/pkg/networking/core, builtAutoPassthroughFilterChains; pilot/pkg/model,
// GetSNIHostsForServer). With *.svc.CLUSTER.SUFFIX, whoever writes ServiceEntries in a namespace would
// have the gateway connect callers from outside to any address.
func (Renderer) Passage(plan *snapshot.PassagePlan, namespace string) []*snapshot.Object {
	vm := snapshot.RefOf(snapshot.VirtualMesh, plan.Mesh.VirtualMesh)
	spec := &networking.Gateway{
		Selector: plan.Gateway.Selector,
		Servers: []*networking.Server{{
			Port:  &networking.Port{Number: plan.Gateway.ContainerPort, Name: "tls", Protocol: "TLS"},
			Hosts: plan.Hosts,
			Tls:   &networking.ServerTLSSettings{Mode: networking.ServerTLSSettings_AUTO_PASSTHROUGH},
		}},
	}
	gateway := plan.Gateway.Destination
	var passes []snapshot.Name
	for _, host := range plan.Hosts {
		pass := []snapshot.Name{passageTo(host)}
		if slices.Contains(plan.Virtual, host) {
			pass = inCluster(plan.Mesh.Cluster, pass)
		}
		passes = append(passes, pass...)
	}
	return []*snapshot.Object{{
		Ref: snapshot.Ref{
			Kind: snapshot.Gateway, Cluster: plan.Mesh.Cluster, Namespace: plan.Mesh.Namespace,
			Name: snapshot.Sanitize(gateway.Name + "-" + gateway.Namespace),
		},
		Content: related(render.NewContent(namespace, spec, []snapshot.Ref{vm}, []snapshot.Ref{vm}), nil, passes),
	}}
}
