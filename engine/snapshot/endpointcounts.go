package snapshot

import (
	"fmt"

	discoveryv1 "github.com/meshctl/meshctl/engine/api/discovery/v1"
)

// StaysLocal reports whether callers in other clusters do not get the addresses of endpoints.
func StaysLocal(part *discoveryv1.EndpointSubset) bool { return part.NoProxy || part.Machines }

// MachineCount is how many of the endpoints of a service are no pods.
func MachineCount(service *discoveryv1.KubeService) (n int) {
	for i := range service.EndpointSubsets {
		if service.EndpointSubsets[i].Machines {
			n += len(service.EndpointSubsets[i].Endpoints)
		}
	}
	return n
}

// MachineText says how many of the endpoints of a service are no pods, and what that means; empty if all are.
func MachineText(service *discoveryv1.KubeService) string {
	all, _ := EndpointCounts(service)
	n := MachineCount(service)
	switch {
	case n == 0:
		return ""
	case all == 1:
		return "the only endpoint is a WorkloadEntry, which callers in other clusters do not reach"
	case n == 1:
		return fmt.Sprintf("1 of %d endpoints is a WorkloadEntry, which callers in other clusters do not reach", all)
	}
	return fmt.Sprintf("%d of %d endpoints are WorkloadEntries, which callers in other clusters do not reach", n, all)
}

// EndpointCounts is how many ready endpoints a service has, and how many of them have no proxy of its mesh, and are not in ambient
// mode either. Of machines, that is not known.
func EndpointCounts(service *discoveryv1.KubeService) (all, bare int) {
	for i := range service.EndpointSubsets {
		n := len(service.EndpointSubsets[i].Endpoints)
		all += n
		if part := &service.EndpointSubsets[i]; part.NoProxy && !part.Machines && !part.Ambient {
			bare += n
		}
	}
	return all, bare
}

// NoProxyText says how many of the endpoints of a service have no proxy of its mesh, and what that means.
func NoProxyText(bare, all int) string {
	const means = " no proxy of the mesh: no policy protects %s, and callers in other clusters do not reach %s"
	switch {
	case all == 1:
		return fmt.Sprintf("the only endpoint has"+means, "it", "it")
	case bare == all:
		return fmt.Sprintf("none of the %d endpoints has a proxy of the mesh: no policy protects them, and callers in other clusters do not reach them", all)
	case bare == 1:
		return fmt.Sprintf("1 of %d endpoints has"+means, all, "it", "it")
	}
	return fmt.Sprintf("%d of %d endpoints have"+means, bare, all, "them", "them")
}
