package snapshot

import discoveryv1 "github.com/meshctl/meshctl/engine/api/discovery/v1"

// MeshType is the kind of a mesh, such as "istio", and where its control plane is
// installed; "unknown" for a spec of no kind.
func MeshType(spec *discoveryv1.MeshSpec) (string, discoveryv1.MeshInstallation) {
	switch {
	case spec.Istio != nil:
		return "istio", spec.Istio.Installation
	case spec.Osm != nil:
		return "osm", spec.Osm.Installation
	case spec.Linkerd != nil:
		return "linkerd", spec.Linkerd.Installation
	case spec.ConsulConnect != nil:
		return "consulconnect", spec.ConsulConnect.Installation
	case spec.AwsAppMesh != nil:
		return "appmesh", discoveryv1.MeshInstallation{Region: spec.AwsAppMesh.Region}
	default:
		return "unknown", discoveryv1.MeshInstallation{}
	}
}
