package virtualmesh

import "github.com/meshctl/meshctl/engine/snapshot"

// This file is about how callers find the address of a host that is made for their mesh.

// resolvesSuffix reports whether callers in a mesh can resolve federated names.
func resolvesSuffix(m *snapshot.MeshPlan) bool {
	return m.DNS.Resolves(m.HostnameSuffix) != snapshot.NotResolved
}

// resolvingIssues say that callers in a member cannot resolve federated names, or may not. Federation without selectors is for
// VirtualDestinations, each of which would say the latter.
func resolvingIssues(plan *snapshot.VirtualMeshPlan, member *snapshot.MeshPlan) []snapshot.Issue {
	const field = "federation.hostnameSuffix"
	f := plan.VirtualMesh.Spec.Federation
	switch how := member.DNS.Resolves(member.HostnameSuffix); {
	case how == snapshot.NotResolved && federates(f):
		return []snapshot.Issue{snapshot.Errorf(snapshot.SmartDNSMissing, member.Dialect.ResolveHint+", or end hostnameSuffix in \"global\"",
			"mesh %s cannot resolve host names ending in %q: its proxies do not capture DNS", member.Ref.Name, member.HostnameSuffix).At(field)}
	case how == snapshot.ResolvedByServer && member.DNS.AsksServers && f != nil && hasPeers(plan, member):
		member.DNS.ServerAssumed = true
		return []snapshot.Issue{serverAssumed(member, "host names ending in \""+member.HostnameSuffix+"\"").At(field)}
	}
	return nil
}

// AssumedServer warns that callers in a mesh resolve a host only by a DNS server; nil if they do not, or if the issues of its VirtualMesh
// say so.
func AssumedServer(m *snapshot.MeshPlan, host string) *snapshot.Issue {
	if m.DNS.ServerAssumed || !m.DNS.AsksServers || m.DNS.Resolves(host) != snapshot.ResolvedByServer {
		return nil
	}
	issue := serverAssumed(m, "host names such as "+host)
	return &issue
}

func serverAssumed(m *snapshot.MeshPlan, what string) snapshot.Issue {
	return snapshot.Warnf(snapshot.DNSServerAssumed, m.Dialect.ResolveHint+", and restart its workloads",
		"mesh %s can resolve %s only if a DNS server of cluster %s answers for them, which is not looked at: its proxies do not capture DNS", m.Ref.Name, what, m.Cluster)
}
