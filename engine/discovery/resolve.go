package discovery

import (
	"fmt"

	"github.com/meshctl/meshctl/engine/snapshot"
)

// detected is a detector with the control planes that it found in a cluster.
type detected struct {
	Detector
	controlPlanes []*ControlPlane
}

// resolution is the control plane of a claim.
type resolution struct {
	// plane is nil if none can be chosen.
	plane *ControlPlane
	// code, message, hint and cause are an issue; code is empty if there is none.
	code    snapshot.Code
	message string
	hint    string
	cause   snapshot.Ref
}

// resolve finds the control plane of a claim. If there is one control plane in the
// cluster, every sidecar belongs to it: another revision gives a warning, but the
// running service is kept.
func (d *detected) resolve(c Claim) resolution {
	var matching []*ControlPlane
	for _, p := range d.controlPlanes {
		if c.Revision == "" || p.Revision == c.Revision {
			matching = append(matching, p)
		}
	}
	switch {
	case len(matching) == 1:
		return doubted(matching[0], c)
	case len(matching) > 1:
		return resolution{
			code:    snapshot.AmbiguousMesh,
			message: fmt.Sprintf("its sidecar could belong to any of %d %s control planes of the cluster, so it is left out", len(matching), d.Name),
			hint:    d.Fix,
		}
	case len(d.controlPlanes) == 1 && c.Requested:
		return doubted(d.controlPlanes[0], c)
	case len(d.controlPlanes) == 1:
		return resolution{
			plane: d.controlPlanes[0],
			code:  snapshot.WorkloadWithoutMesh,
			message: fmt.Sprintf("its sidecar is of %s %q, which no %s control plane of the cluster has; it is assigned to %s",
				d.RevisionName, c.Revision, d.Name, d.controlPlanes[0].Mesh.Name),
			hint: d.Fix,
		}
	default:
		return resolution{
			code: snapshot.WorkloadWithoutMesh,
			message: fmt.Sprintf("its sidecar is of %s %q, which none of the %d %s control planes of the cluster has, so it is left out",
				d.RevisionName, c.Revision, len(d.controlPlanes), d.Name),
			hint: d.Fix,
		}
	}
}

// doubted is a control plane with a warning if the claim leaves a doubt about it.
func doubted(p *ControlPlane, c Claim) resolution {
	if c.Doubt == "" {
		return resolution{plane: p}
	}
	return resolution{
		plane: p, code: snapshot.WorkloadWithoutMesh,
		message: fmt.Sprintf("%s; it is assigned to %s", c.Doubt, p.Mesh.Name),
		hint:    "add the namespace to the mesh again, or restart the pods to remove their sidecars",
		cause:   c.Cause,
	}
}
