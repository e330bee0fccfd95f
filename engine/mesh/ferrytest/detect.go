package ferrytest

import (
	"slices"

	corev1 "k8s.io/api/core/v1"

	discoveryv1 "github.com/meshctl/meshctl/engine/api/discovery/v1"
	"github.com/meshctl/meshctl/engine/discovery"
	"github.com/meshctl/meshctl/engine/snapshot"
)

// Detector finds control planes by a label of Deployments, and proxies by the name of a container.
func Detector() discovery.Detector {
	return discovery.Detector{
		Name: "Ferry", ControlPlanes: controlPlanes, Sidecar: sidecarOf,
		RevisionName: "revision", Fix: "restart it",
	}
}

func controlPlanes(x *discovery.Index) []*discovery.ControlPlane {
	var out []*discovery.ControlPlane
	for _, d := range x.Deployments {
		if d.Labels["app"] == "ferry-control" {
			mesh := x.NewMesh(d)
			version := x.Version(d.Spec.Template.Spec.Containers[0].Image, d, snapshot.RefOf(snapshot.Mesh, mesh))
			mesh.Spec.Linkerd = &discoveryv1.LinkerdMesh{Installation: x.Installation(d, version), ClusterDomain: "ferry.example"}
			out = append(out, &discovery.ControlPlane{Mesh: mesh})
		}
	}
	return out
}

func sidecarOf(_ *discovery.Index, pod *corev1.Pod) (discovery.Claim, bool) {
	return discovery.Claim{}, slices.ContainsFunc(pod.Spec.Containers, func(c corev1.Container) bool { return c.Name == "ferry-proxy" })
}
