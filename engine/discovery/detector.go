package discovery

import (
	"fmt"

	corev1 "k8s.io/api/core/v1"

	commonv1 "github.com/meshctl/meshctl/engine/api/common/v1"
	discoveryv1 "github.com/meshctl/meshctl/engine/api/discovery/v1"
	"github.com/meshctl/meshctl/engine/snapshot"
)

// detector is all that discovery knows about one sort of mesh.
type detector struct {
	// title is the mesh's name in sentences.
	title string
	// meshes finds the control planes, ascending by namespace and name.
	meshes func(*world) []*mesh
	// sidecar reports whether a pod runs the mesh's proxy, and what the pod
	// says about the control plane that it belongs to.
	sidecar func(*corev1.Pod) (claim, bool)
	// configMap reports whether meshes reads ConfigMaps of that name.
	configMap func(name string) bool
	// found is what meshes found in the cluster at hand.
	found []*mesh
}

// detectors lists the sorts of meshes. A pod that runs the proxies of several
// belongs to the first.
func detectors() []detector {
	return []detector{istio()}
}

// mesh is one control plane.
type mesh struct {
	object *discoveryv1.Mesh
	// revision tells several control planes of a cluster apart; empty for
	// meshes that know no such thing.
	revision string
}

func (m *mesh) ref() commonv1.ObjectRef {
	return commonv1.ObjectRef{Name: m.object.Name, Namespace: m.object.Namespace}
}

// claim is what a pod with a sidecar says about its control plane.
type claim struct {
	// revision is empty if the pod does not say.
	revision string
	// asked is true if revision is what somebody asked for, which may be an
	// alias, and false if it is what the injecting control plane wrote down.
	asked bool
}

// verdict is to which mesh a pod belongs.
type verdict struct {
	mesh *mesh
	// code and message say what is doubtful; code is empty if nothing is.
	code    snapshot.Code
	message string
	hint    string
}

// settle finds the mesh that a pod claims to belong to. With one control plane
// in the cluster every sidecar belongs to it: which revision injected it is
// worth a warning, but no reason to lose a running service.
func (d *detector) settle(c claim) verdict {
	var matching []*mesh
	for _, m := range d.found {
		if c.revision == "" || m.revision == c.revision {
			matching = append(matching, m)
		}
	}
	switch {
	case len(matching) == 1:
		return verdict{mesh: matching[0]}
	case len(matching) > 1:
		return verdict{
			code:    snapshot.AmbiguousMesh,
			message: fmt.Sprintf("its sidecar could belong to any of %d %s control planes of the cluster, so it is left out", len(matching), d.title),
			hint:    "restart it, so that the injector writes its revision into the pods, and give every control plane a revision of its own",
		}
	case len(d.found) == 1 && c.asked:
		return verdict{mesh: d.found[0]}
	case len(d.found) == 1:
		return verdict{
			mesh: d.found[0],
			code: snapshot.WorkloadWithoutMesh,
			message: fmt.Sprintf("its sidecar was injected by revision %q, which no %s control plane of the cluster has; it is counted to %s",
				c.revision, d.title, d.found[0].object.Name),
			hint: "restart it to have the sidecar of a control plane that runs",
		}
	default:
		return verdict{
			code: snapshot.WorkloadWithoutMesh,
			message: fmt.Sprintf("its sidecar is of revision %q, which none of the %d %s control planes of the cluster has, so it is left out",
				c.revision, len(d.found), d.title),
			hint: "restart it to have the sidecar of a control plane that runs, or bring that revision back",
		}
	}
}
