package snapshot

import (
	"fmt"

	discoveryv1 "github.com/meshctl/meshctl/engine/api/discovery/v1"
)

// EndpointCounts is how many ready endpoints a service has, and how many of them have no proxy of its mesh.
func EndpointCounts(service *discoveryv1.KubeService) (all, bare int) {
	for i := range service.EndpointSubsets {
		n := len(service.EndpointSubsets[i].Endpoints)
		all += n
		if service.EndpointSubsets[i].NoProxy {
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
