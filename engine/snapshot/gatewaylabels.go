package snapshot

import "slices"

// GatewayLabels is how those who install a kind of mesh label the pods of its gateways. No GatewayLabels is nil: gateways have to be
// named, or told by how their pods run.
type GatewayLabels struct {
	// Role is the label that says what a gateway is for.
	Role string
	// EastWest is its value for connections from other clusters; Ingress, those for clients, the usual one first; Egress, those for
	// connections that leave the mesh.
	EastWest        string
	Ingress, Egress []string
	// Deployed is a label, with any value, of pods that the mesh deploys for a gateway of the user.
	Deployed string
}

// RoleOf is what labels say that a gateway is for; empty if nothing.
func (g *GatewayLabels) RoleOf(labels map[string]string) string {
	if g == nil {
		return ""
	}
	return labels[g.Role]
}

// IsEastWest reports whether labels are those of a gateway for other clusters.
func (g *GatewayLabels) IsEastWest(labels map[string]string) bool {
	role := g.RoleOf(labels)
	return role != "" && role == g.EastWest
}

// Enters reports whether labels are those of a gateway where connections enter the mesh.
func (g *GatewayLabels) Enters(labels map[string]string) bool {
	return g.IsEastWest(labels) || g != nil && slices.Contains(g.Ingress, g.RoleOf(labels))
}

// Match reports whether labels are those of a gateway of any role.
func (g *GatewayLabels) Match(labels map[string]string) bool {
	return g.Enters(labels) || g != nil && (slices.Contains(g.Egress, g.RoleOf(labels)) || labels[g.Deployed] != "")
}
