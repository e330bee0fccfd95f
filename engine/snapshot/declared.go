package snapshot

import (
	"slices"
	"strings"
)

// Offer is where a VirtualMesh in mode DECLARED lets a service be imported.
type Offer struct {
	// To are the meshes, ascending by Ref. One that needs the service imports it.
	To []*MeshPlan
	// Origin is the selector that offers it.
	Origin Origin
}

// NotImported reports whether a mesh could import a service, and does not because nothing declares that its callers need it
// (networkingv1.FederationModeDeclared).
func (d *DestinationPlan) NotImported(mesh *MeshPlan) bool {
	return d.Offered != nil && slices.Contains(d.Offered.To, mesh) && (d.Federation == nil || !slices.Contains(d.Federation.To, mesh))
}

// Because is what declares that callers of a mesh need a service, ascending; nil where a VirtualMesh has all services imported.
func (f *Federation) Because(mesh *MeshPlan) []Origin {
	if f.ImportedBy == nil {
		return nil
	}
	at := slices.Index(f.To, mesh)
	if at < 0 {
		return nil
	}
	return f.ImportedBy[at]
}

// CompareOrigins orders origins by object and field.
func CompareOrigins(a, b Origin) int {
	if c := a.Ref.Compare(b.Ref); c != 0 {
		return c
	}
	return strings.Compare(a.Field, b.Field)
}
