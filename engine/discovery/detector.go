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
	// sidecar reports whether a pod runs the mesh's proxy, and what the pod or
	// its namespace says about the control plane that it belongs to.
	sidecar func(*world, *corev1.Pod) (claim, bool)
	// namespace is what a namespace says about the mesh of what is in it;
	// false if nothing.
	namespace func(*corev1.Namespace) (claim, bool)
	// listed: control planes look into no namespace that does not name them.
	listed bool
	// variant is what tells several control planes of a cluster apart.
	variant string
	// mend is what to do about a sidecar whose control plane is doubtful.
	mend string
	// configMap reports whether meshes reads ConfigMaps of that name.
	configMap func(name string) bool
	// found is what meshes found in the cluster at hand.
	found []*mesh
}

// detectors lists the sorts of meshes. A pod that runs the proxies of several
// belongs to the first.
func detectors() []detector {
	return []detector{istio(), osm()}
}

// mesh is one control plane.
type mesh struct {
	object *discoveryv1.Mesh
	// revision tells several control planes of a cluster apart.
	revision string
	// usual: the revision is what an installation has that is given none.
	usual bool
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
	// doubt is why the control plane may not serve the pod; empty if it does.
	doubt string
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
		return doubted(matching[0], c)
	case len(matching) > 1:
		return verdict{
			code:    snapshot.AmbiguousMesh,
			message: fmt.Sprintf("its sidecar could belong to any of %d %s control planes of the cluster, so it is left out", len(matching), d.title),
			hint:    d.mend,
		}
	case len(d.found) == 1 && c.asked:
		return doubted(d.found[0], c)
	case len(d.found) == 1:
		return verdict{
			mesh: d.found[0],
			code: snapshot.WorkloadWithoutMesh,
			message: fmt.Sprintf("its sidecar is of %s %q, which no %s control plane of the cluster has; it is counted to %s",
				d.variant, c.revision, d.title, d.found[0].object.Name),
			hint: d.mend,
		}
	default:
		return verdict{
			code: snapshot.WorkloadWithoutMesh,
			message: fmt.Sprintf("its sidecar is of %s %q, which none of the %d %s control planes of the cluster has, so it is left out",
				d.variant, c.revision, len(d.found), d.title),
			hint: d.mend,
		}
	}
}

// doubted is a mesh with a warning if the claim leaves a doubt about it.
func doubted(m *mesh, c claim) verdict {
	if c.doubt == "" {
		return verdict{mesh: m}
	}
	return verdict{
		mesh: m, code: snapshot.WorkloadWithoutMesh,
		message: fmt.Sprintf("%s; it is counted to %s", c.doubt, m.object.Name),
		hint:    "take the namespace into the mesh again, or restart the pods to be rid of their sidecars",
	}
}
