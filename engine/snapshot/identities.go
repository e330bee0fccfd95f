package snapshot

import (
	"slices"

	discoveryv1 "github.com/meshctl/meshctl/engine/api/discovery/v1"
)

// Identities are those with which the pods behind a service of the mesh answer, as in
// their certificates, ascending; nil if they are not all known.
//
// They are of the mesh's trust domain, in which its control plane issues certificates, and
// of its aliases: while a mesh moves to another trust domain, pods present the one before,
// now an alias, until their certificates are renewed. Within the mesh, callers accept the
// same ones (Istio, spiffe.ExpandWithTrustDomains). An assumed trust domain is not used:
// callers would refuse every answer if it were wrong.
func (m *MeshPlan) Identities(service *discoveryv1.KubeService) []string {
	if service == nil || !m.Dialect.SPIFFE {
		return nil
	}
	var out []string
	for _, domain := range m.OwnTrustDomains() {
		for _, account := range service.ServiceAccounts {
			out = append(out, m.Dialect.Principal(domain, service.Ref.Namespace, account))
		}
	}
	slices.Sort(out)
	return slices.Compact(out)
}

// Answers are the identities with which pods behind a VirtualDestination answer,
// ascending; nil if they are not all known.
//
// They are those of all services behind it, whichever of them a caller's mesh reaches: a
// gateway passes connections on to every service behind it in its cluster.
func (p *VirtualDestinationPlan) Answers() []string {
	var out []string
	for _, b := range p.Backing {
		of := b.Mesh.Identities(b.Destination.Spec.KubeService)
		if len(of) == 0 {
			return nil
		}
		out = append(out, of...)
	}
	slices.Sort(out)
	return slices.Compact(out)
}
