package istio

import (
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/meshctl/meshctl/engine/discovery"
	"github.com/meshctl/meshctl/engine/snapshot"
)

// This file is about objects that are for one control plane of a cluster: of those with the label istio.io/rev, a control plane reads
// only those whose value is its own revision. Revision tags do not count, and neither does the label of the namespace (Istio,
// config.LabelsInRevision, by crdclient.Client.inRevision and gateway.Controller.inRevision).

// revisioned is whose an object is.
type revisioned struct {
	// labelled objects are for the control plane of a revision, which may be empty; others are for all.
	labelled bool
	revision string
}

func revisionedOf(o metav1.Object) revisioned {
	revision, labelled := o.GetLabels()[revisionKey]
	return revisioned{labelled, revision}
}

// readBy reports whether the control plane of a revision reads the object.
func (r revisioned) readBy(revision string) bool { return !r.labelled || r.revision == revision }

// of reports whether the control plane of a mesh reads the object.
func (r revisioned) of(mesh *snapshot.MeshPlan) bool {
	return !r.labelled || r.readBy(revisionOfMesh(mesh))
}

// inRevision reports whether the control plane of a mesh reads an object.
func inRevision(mesh *snapshot.MeshPlan, o metav1.Object) bool { return revisionedOf(o).of(mesh) }

// revisionOfMesh is the revision of the control plane of a mesh, by the labels of its pods or else its name, which is that of its
// Deployment before its namespace.
func revisionOfMesh(mesh *snapshot.MeshPlan) string {
	spec := specOf(mesh)
	if spec == nil {
		return defaultRevision
	}
	deployment, _, _ := strings.Cut(mesh.Mesh.Name, "-"+spec.Installation.Namespace+"-")
	revision, _, _ := storedRevision(&mesh.Mesh.Spec, deployment)
	return revision
}

// onlyRevision leaves of labels the one that says for which control plane an object is.
func onlyRevision(labels map[string]string) map[string]string {
	if revision, labelled := labels[revisionKey]; labelled {
		return map[string]string{revisionKey: revision}
	}
	return nil
}

// inAnyRevision reports whether one of some control planes reads an object.
func inAnyRevision(planes []*discovery.ControlPlane, o metav1.Object) bool {
	return slices.ContainsFunc(planes, func(p *discovery.ControlPlane) bool { return revisionedOf(o).readBy(p.Revision) })
}
