package istio

import (
	networking "istio.io/api/networking/v1alpha3"

	"github.com/meshctl/meshctl/engine/render"
	"github.com/meshctl/meshctl/engine/snapshot"
)

// anywhere, as the namespace or the name of an egress host, is any.
const anywhere = "*"

// Sidecar renders the hosts that the proxies of some pods are configured with. Hosts
// are imported from any namespace, so that routes that callers keep for them in their
// own namespaces stay in force.
func (Renderer) Sidecar(plan *snapshot.SidecarPlan, namespace string) []*snapshot.Object {
	listener := &networking.IstioEgressListener{}
	for _, h := range plan.Egress.Hosts {
		from := h.Namespace
		if from == "" {
			from = anywhere
		}
		listener.Hosts = append(listener.Hosts, from+"/"+h.Host)
	}
	if plan.Egress.Everything {
		listener.Hosts = []string{anywhere + "/" + anywhere}
	}
	spec := &networking.Sidecar{
		WorkloadSelector: &networking.WorkloadSelector{Labels: plan.Selector},
		Egress:           []*networking.IstioEgressListener{listener},
	}
	parents := plan.Egress.Dependencies
	return []*snapshot.Object{{Ref: plan.Ref, Content: render.NewContent(namespace, spec, parents, parents)}}
}
