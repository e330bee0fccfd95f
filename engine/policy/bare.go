package policy

import (
	discoveryv1 "github.com/meshctl/meshctl/engine/api/discovery/v1"
	"github.com/meshctl/meshctl/engine/inventory"
	"github.com/meshctl/meshctl/engine/snapshot"
)

// bareIssues warn the author of an AccessPolicy that endpoints of a service have no proxy which could enforce it.
func bareIssues(d *discoveryv1.Destination) []snapshot.Issue {
	all, bare := snapshot.EndpointCounts(d.Spec.KubeService)
	if bare == 0 {
		return nil
	}
	return []snapshot.Issue{snapshot.Warnf(snapshot.ProxyMissing, "have the proxy injected into all pods of the Service, and restart those without",
		"service %s: %s", inventory.ServiceName(d.Spec.KubeService.Ref), snapshot.NoProxyText(bare, all)).At("destinationSelector")}
}
