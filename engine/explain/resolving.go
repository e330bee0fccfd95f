package explain

import (
	"fmt"

	discoveryv1 "github.com/meshctl/meshctl/engine/api/discovery/v1"
	"github.com/meshctl/meshctl/engine/snapshot"
)

// This file is about how callers find the address of a host that only the mesh knows. Gateways call nothing by its name, and in ambient
// mode ztunnel answers, which is named as not followed.

// resolving says how the callers find the address of a host that is made for their mesh, and because of what.
func resolving(q *query, host string) (how snapshot.Resolving, why string) {
	says := ""
	if k := q.workload.Spec.Kubernetes; k != nil {
		says = k.ProxyDNS
	}
	switch how = q.mesh.DNS.Resolves(host); {
	case isGateway(q.workload) || modeOf(q.workload) != discoveryv1.ModeOwnProxy || says == discoveryv1.ProxyDNSOn:
		return snapshot.ResolvedByProxies, ""
	case says == discoveryv1.ProxyDNSOff:
		return snapshot.ResolvedByServer, "the callers' own"
	}
	return how, "those of mesh " + q.mesh.Ref.Name
}

// unresolved names that the callers may find no address for a host that is made for their mesh.
func unresolved(q *query, host string) []string {
	how, whose := resolving(q, host)
	if how == snapshot.ResolvedByProxies {
		return nil
	}
	return []string{fmt.Sprintf("whether the callers can resolve %s: proxies do not capture DNS (%s), so that a DNS server of cluster %s has to answer for it, which is not looked at; without an answer, applications send no request",
		host, whose, q.mesh.Cluster)}
}

// resolvedByServers are the meshes whose proxies do not answer for a host that is made for them. Workloads may say otherwise of their own.
func resolvedByServers(meshes []*snapshot.MeshPlan, host string) (out []snapshot.Ref) {
	for _, m := range meshes {
		if m.DNS.Resolves(host) != snapshot.ResolvedByProxies {
			out = append(out, m.Ref)
		}
	}
	return out
}

// byServersText is what is not looked at of meshes whose proxies do not answer for a host; empty for none.
func byServersText(meshes []snapshot.Ref) string {
	if len(meshes) == 0 {
		return ""
	}
	names := make([]string, len(meshes))
	for i, ref := range meshes {
		names[i] = shortName(ref)
	}
	return fmt.Sprintf("whether callers in %s can resolve it: proxies there do not capture DNS, so that a DNS server of their cluster has to answer", firstOf(names))
}
