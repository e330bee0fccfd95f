package policy

import (
	"slices"

	discoveryv1 "github.com/meshctl/meshctl/engine/api/discovery/v1"
	"github.com/meshctl/meshctl/engine/inventory"
	"github.com/meshctl/meshctl/engine/snapshot"
)

// bareIssues warn the author of an AccessPolicy that endpoints of a service have no proxy which could enforce it.
func bareIssues(d *discoveryv1.Destination) []snapshot.Issue {
	service := d.Spec.KubeService
	var issues []snapshot.Issue
	if all, bare := snapshot.EndpointCounts(service); bare > 0 {
		issues = append(issues, snapshot.Warnf(snapshot.ProxyMissing, "have the proxy injected into all pods of the Service, and restart those without",
			"service %s: %s", inventory.ServiceName(service.Ref), snapshot.NoProxyText(bare, all)).At("destinationSelector"))
	}
	if slices.ContainsFunc(service.EndpointSubsets, func(part discoveryv1.EndpointSubset) bool { return part.Machines && part.NoProxy }) {
		issues = append(issues, snapshot.Warnf(snapshot.CallersUnidentified, "set serviceAccount in the WorkloadEntry of a machine that runs a proxy",
			"service %s has a WorkloadEntry without a service account: callers present no identity to it, and whether a proxy there refuses them is not known", inventory.ServiceName(service.Ref)).
			At("destinationSelector"))
	}
	return issues
}
