package discovery

import (
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"

	discoveryv1 "github.com/meshctl/meshctl/engine/api/discovery/v1"
	"github.com/meshctl/meshctl/engine/snapshot"
)

// This file says what stays known although it is not there at present: a control plane
// whose Deployment is deleted may be about to be created again, and so may the workloads
// of a Service. What follows from them protects others.

// keptControlPlanes are the stored meshes of a kind whose Deployment is not there. They
// stay until the caller says that they are gone for good.
func (x *Index) keptControlPlanes(d *Detector, found []*ControlPlane, gone []string) []*ControlPlane {
	if x.stored == nil || d.Stored == nil {
		return nil
	}
	var out []*ControlPlane
	s := stored{namespace: x.namespace, labels: x.labels}
	for _, o := range x.stored.Meshes {
		_, at := snapshot.MeshType(&o.Spec)
		// With a hash in its name, it may be one of those found.
		deployment, usual := strings.CutSuffix(o.Name, objectName("", at.Namespace, x.Cluster))
		if !usual || at.Cluster != x.Cluster || !s.has(&o.ObjectMeta) ||
			slices.ContainsFunc(found, func(p *ControlPlane) bool { return p.Mesh.Name == o.Name }) {
			continue
		}
		revision, standard, ok := d.Stored(&o.Spec, deployment)
		if !ok {
			continue
		}
		if slices.Contains(gone, o.Name) {
			continue
		}
		mesh := &discoveryv1.Mesh{ObjectMeta: x.meta(o.Name), Spec: o.Spec}
		x.absent = append(x.absent, o.Name)
		x.Report(snapshot.Issue{
			Code: snapshot.ControlPlaneMissing, Severity: snapshot.Warning, Ref: snapshot.RefOf(snapshot.Mesh, mesh),
			Message: "its control plane is not there; what was written for its workloads stays for a while, in case it comes back",
			Hint:    "install it again or, if it is gone for good, remove the mesh from its VirtualMesh, or delete the Mesh",
		})
		out = append(out, &ControlPlane{Mesh: mesh, Revision: revision, Default: standard, Ambient: o.Spec.Istio != nil && o.Spec.Istio.Ambient != nil})
	}
	return out
}

// lastMeshOf is the mesh that a Service without workloads had before: nothing says that it
// has another one now.
func (x *Index) lastMeshOf(kinds []*detected, s *corev1.Service) *ControlPlane {
	service, selector := keyOf(s), s.Spec.Selector
	if x.stored == nil || len(selector) == 0 && (backing{x}).answers(service) || len(selector) > 0 && x.selectsAny(service.namespace, selector) {
		return nil
	}
	x.usedDestinations = true // also if it is not stored yet
	if x.lastServices == nil {
		x.lastServices = map[key]string{}
		s := stored{namespace: x.namespace, labels: x.labels}
		for _, o := range x.stored.Destinations {
			if k := o.Spec.KubeService; k != nil && o.Spec.Mesh != nil && !k.NoProxies && s.has(&o.ObjectMeta) {
				x.lastServices[key{k.Ref.Namespace, k.Ref.Name}] = o.Spec.Mesh.Name
			}
		}
	}
	name, had := x.lastServices[service]
	if !had {
		return nil
	}
	for _, k := range kinds {
		for _, p := range k.controlPlanes {
			if p.Mesh.Name == name {
				return p
			}
		}
	}
	return nil
}

// selectsAny reports whether a selector selects pods that exist, or that a controller
// would create, in a mesh or not.
func (x *Index) selectsAny(namespace string, selector map[string]string) bool {
	for _, c := range x.controllers {
		if c.ref.Namespace == namespace && contains(c.template.Labels, selector) {
			return true
		}
	}
	at, _ := slices.BinarySearchFunc(x.pods, namespace, func(p *corev1.Pod, namespace string) int { return strings.Compare(p.Namespace, namespace) })
	for _, p := range x.pods[at:] {
		if p.Namespace != namespace {
			break
		}
		if contains(p.Labels, selector) {
			return true
		}
	}
	return false
}
