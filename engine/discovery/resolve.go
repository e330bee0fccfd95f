package discovery

import (
	"fmt"
	"slices"

	"github.com/meshctl/meshctl/engine/snapshot"
)

// detected is a detector with the control planes that it found in a cluster.
type detected struct {
	Detector
	controlPlanes []*ControlPlane
	// unread are the revisions of control planes that are left out because their settings
	// were never read.
	unread []string
}

func newDetected(d Detector, planes []*ControlPlane) *detected {
	out := &detected{Detector: d}
	for _, p := range planes {
		if p.Unread {
			out.unread = append(out.unread, p.Revision)
		} else {
			if d.Identities != nil {
				p.identities = d.Name + " " + d.Identities(&p.Mesh.Spec)
			}
			out.controlPlanes = append(out.controlPlanes, p)
		}
	}
	return out
}

// resolution is the control plane of a claim.
type resolution struct {
	// plane is nil if none can be chosen.
	plane *ControlPlane
	// among are the control planes of which none can be chosen.
	among []*ControlPlane
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
			among: matching,
			code:  snapshot.AmbiguousMesh,
			message: fmt.Sprintf("its sidecar could belong to any of %d %s control planes of the cluster, such as %s and %s",
				len(matching), d.Name, matching[0].Mesh.Name, matching[1].Mesh.Name),
			hint: d.Fix,
		}
	case slices.Contains(d.unread, c.Revision):
		return resolution{
			among: d.controlPlanes,
			code:  snapshot.WorkloadWithoutMesh,
			message: fmt.Sprintf("its sidecar is of %s %q, whose %s control plane is left out until its settings can be read",
				d.RevisionName, c.Revision, d.Name),
			hint: "see the issue of the control plane's ConfigMap",
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

// stayed is a resolution with the control plane that a controller had before, if that is
// one of those in doubt: a doubt must not withdraw what protects its pods.
func (x *Index) stayed(r resolution, ctl *controller) resolution {
	if len(r.among) == 0 {
		return r
	}
	if x.lastMesh == nil && x.stored != nil {
		x.lastMesh = map[key]string{}
		for _, o := range FromStored(x.Cluster, x.stored).Workloads {
			at := o.Spec.Kubernetes.Controller
			x.lastMesh[key{at.Namespace, at.Name}] = o.Spec.Mesh.Name
		}
	}
	for _, p := range r.among {
		if p.Mesh.Name == x.lastMesh[key{ctl.ref.Namespace, ctl.name}] {
			r.plane = p
			r.message += ", so it stays with " + p.Mesh.Name
			return r
		}
	}
	r.message += ", so it is left out"
	return r
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
