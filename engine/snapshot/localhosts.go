package snapshot

import (
	"slices"
	"strings"
)

// KeepsInCluster reports whether callers of the mesh get those endpoints of a host only that are in their own cluster, whatever other
// clusters its control plane knows: the host itself decides, else the longest of the names that begin with * and match it (Istio,
// model.MostSpecificHostMatch).
func (m *MeshPlan) KeepsInCluster(host string) bool {
	if slices.Contains(m.LocalHosts, host) || slices.Contains(m.SharedHosts, host) {
		return slices.Contains(m.LocalHosts, host)
	}
	local, shared := longestMatch(m.LocalHosts, host), longestMatch(m.SharedHosts, host)
	return local > shared
}

// KeepsAllInCluster reports whether KeepsInCluster holds for the services of all namespaces.
func (m *MeshPlan) KeepsAllInCluster() bool {
	return len(m.SharedHosts) == 0 && m.KeepsInCluster(".svc.cluster.local")
}

// longestMatch is the length of the longest pattern with a * at its beginning that matches a host; 0 if none does.
func longestMatch(patterns []string, host string) (longest int) {
	for _, p := range patterns {
		if suffix, isPattern := strings.CutPrefix(p, "*"); isPattern && strings.HasSuffix(host, suffix) {
			longest = max(longest, len(p))
		}
	}
	return longest
}
