package policy

import (
	"slices"

	discoveryv1 "github.com/meshctl/meshctl/engine/api/discovery/v1"
	"github.com/meshctl/meshctl/engine/inventory"
	"github.com/meshctl/meshctl/engine/snapshot"
)

// bareIssues warn the author of an AccessPolicy that endpoints of a service have no proxy which could enforce it.
func bareIssues(d *discoveryv1.Destination, mesh *snapshot.MeshPlan) []snapshot.Issue {
	service := d.Spec.KubeService
	var issues []snapshot.Issue
	if all, bare := snapshot.EndpointCounts(service); bare > 0 {
		issues = append(issues, snapshot.Warnf(snapshot.ProxyMissing, "have the proxy injected into all pods of the Service, and restart those without",
			"service %s: %s", inventory.ServiceName(service.Ref), snapshot.NoProxyText(bare, all)).At("destinationSelector"))
	}
	if text := snapshot.PastProxyText(service); text != "" {
		issues = append(issues, snapshot.Warnf(snapshot.ProxyMissing, "leave the port to the proxies in the traffic annotations of the pods and the settings of their injector",
			"service %s: %s", inventory.ServiceName(service.Ref), text).At("destinationSelector"))
	}
	if by := plainBy(service, mesh); by != "" {
		issues = append(issues, snapshot.Warnf(snapshot.CallersUnidentified, "remove the label, or set TLS mode ISTIO_MUTUAL for the service",
			"service %s: callers of its own mesh present no identity unless a TLS mode says so, as %s", inventory.ServiceName(service.Ref), by).At("destinationSelector"))
	}
	if slices.ContainsFunc(service.EndpointSubsets, func(part discoveryv1.EndpointSubset) bool { return part.Machines && part.NoProxy }) {
		issues = append(issues, snapshot.Warnf(snapshot.CallersUnidentified, "set serviceAccount in the WorkloadEntry of a machine that runs a proxy",
			"service %s has a WorkloadEntry without a service account: callers present no identity to it, and whether a proxy there refuses them is not known", inventory.ServiceName(service.Ref)).
			At("destinationSelector"))
	}
	return issues
}

// plainBy says because of what labels callers present no identity to pods of a service; empty if they do to all.
func plainBy(service *discoveryv1.KubeService, mesh *snapshot.MeshPlan) string {
	if mesh.Dialect.PodTraits == nil {
		return ""
	}
	for i := range service.EndpointSubsets {
		part := &service.EndpointSubsets[i]
		for j := range part.Endpoints {
			if by := mesh.Dialect.PodTraits(mesh, part.Endpoints[j].Labels).Plain; by != "" && !part.NoProxy {
				return by
			}
		}
	}
	return ""
}
