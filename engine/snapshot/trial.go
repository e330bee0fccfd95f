package snapshot

// TrialPlan is what proxies try on each request because AccessPolicies, or a VirtualMesh, are audited: whether it would be refused if all
// that is audited was enforced. They count the answers, and refuse nothing by them.
type TrialPlan struct {
	// Mesh is that of the pods, as it would be.
	Mesh *MeshPlan
	// Destination is the service whose pods try it, as it would be; nil for all pods of the mesh, which try whether they deny by default.
	Destination *DestinationPlan
	// Allows: the callers that are let in are tried. Where the pods try who is let in at all, they try all of it: by itself, what is
	// audited would let in too few.
	Allows bool
	// Denials are those that are audited; nil if none are.
	Denials *Denials
	// Audits are the AccessPolicies, or the VirtualMesh, because of which there is a trial, ascending; there is at least one.
	Audits []Ref
}

// Key is unique among trials, and orders them: those of meshes come first.
func (t *TrialPlan) Key() string {
	if t.Destination == nil {
		return " " + t.Mesh.Ref.Name // no name begins with a space
	}
	return t.Destination.Ref.Name
}
