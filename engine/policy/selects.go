package policy

import (
	commonv1 "github.com/meshctl/meshctl/engine/api/common/v1"
	discoveryv1 "github.com/meshctl/meshctl/engine/api/discovery/v1"
)

// SelectsDestination reports whether any selector matches a Destination, as it
// would in a policy; no selectors match all Services.
func SelectsDestination(selectors []commonv1.DestinationSelector, d *discoveryv1.Destination) bool {
	return matchesDestination(selectors, d)
}

// SelectsWorkload reports whether any selector of a TrafficPolicy matches a
// workload as the one that calls; no selectors match all.
func SelectsWorkload(selectors []commonv1.WorkloadSelector, w *discoveryv1.KubernetesWorkload) bool {
	return matchesWorkload(selectors, w)
}

// SelectsIdentity reports whether any selector of an AccessPolicy names the
// identity under which a workload runs; no selectors name all.
func SelectsIdentity(selectors []commonv1.IdentitySelector, w *discoveryv1.KubernetesWorkload) bool {
	return matchesIdentity(selectors, w)
}
