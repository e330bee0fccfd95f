package discovery

import (
	appsv1 "k8s.io/api/apps/v1"

	"github.com/meshctl/meshctl/engine/snapshot"
)

// This file says which Deployments are believed to be control planes. Anyone who may edit
// one namespace can make a Deployment that looks like one, and a mesh changes what all
// workloads of its cluster belong to. So a control plane needs evidence that is outside of
// its namespace, or that an editor of a namespace cannot write.

// Believed reports whether a Deployment that looks like a control plane is one: there is
// evidence, or the Settings name its namespace, or there was evidence before. If there is
// none now, that is an issue: missing says what there is not.
func (x *Index) Believed(d *appsv1.Deployment, evidence bool, mesh, missing string) bool {
	if evidence || x.installed[d.Namespace] {
		return true
	}
	if x.StoredMesh(objectName(d.Name, d.Namespace, x.Cluster), d.Namespace) != nil {
		x.Report(snapshot.Issue{
			Code: snapshot.ControlPlaneIgnored, Severity: snapshot.Warning, Ref: x.Ref(snapshot.Deployment, d),
			Message: "it stays a control plane of " + mesh + ", although nothing shows any more that it was installed as one: " + missing,
			Hint:    "install it again, or name its namespace in the Settings (discovery.controlPlanes); or delete the Deployment",
		})
		return true
	}
	x.Report(snapshot.Issue{
		Code: snapshot.ControlPlaneIgnored, Severity: snapshot.Warning, Ref: x.Ref(snapshot.Deployment, d),
		Message: "it looks like a control plane of " + mesh + " and is ignored, because anyone who may edit its namespace can have made it: " + missing,
		Hint:    "if you installed it, name its namespace in the Settings (discovery.controlPlanes); else ask who made it",
	})
	return false
}
