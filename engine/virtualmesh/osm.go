package virtualmesh

import (
	discoveryv1 "github.com/meshctl/meshctl/engine/api/discovery/v1"
	networkingv1 "github.com/meshctl/meshctl/engine/api/networking/v1"
	"github.com/meshctl/meshctl/engine/snapshot"
)

const (
	osmMeshConfig     = "osm-mesh-config"
	osmPermissiveMode = "traffic.enablePermissiveTrafficPolicyMode"
)

// setOSM sets what an Open Service Mesh is by itself: unless it is permissive, it
// denies what no policy allows.
func setOSM(plan *snapshot.MeshPlan, osm *discoveryv1.OSMMesh) {
	if osm.TrustDomain != "" {
		plan.TrustDomain = osm.TrustDomain
	}
	if !osm.PermissiveTrafficPolicyMode {
		plan.DenyByDefault = &snapshot.Origin{
			Ref:   snapshot.Ref{Kind: snapshot.MeshConfig, Cluster: osm.Installation.Cluster, Namespace: osm.Installation.Namespace, Name: osmMeshConfig},
			Field: osmPermissiveMode,
		}
	}
}

// osmMemberIssues reports what of a VirtualMesh has no effect on an Open Service
// Mesh.
func osmMemberIssues(plan *snapshot.VirtualMeshPlan, member *snapshot.MeshPlan) {
	spec, name := &plan.VirtualMesh.Spec, member.Ref.Name
	tell := func(issue snapshot.Issue) { plan.Issues = append(plan.Issues, issue.On(plan.Ref, member.Ref)) }
	if federates(spec.Federation) {
		tell(snapshot.Warnf(snapshot.FieldUnsupported, "remove the mesh from spec.meshes if its services have to be seen from other clusters",
			"federation leaves out mesh %s: Open Service Mesh knows its own cluster only", name).At("federation"))
	}
	if spec.MtlsConfig != nil {
		tell(snapshot.Warnf(snapshot.FieldUnsupported, "configure the certificates of Open Service Mesh where it is installed",
			"mtlsConfig has no effect on mesh %s: Open Service Mesh has a root certificate of its own", name).At("mtlsConfig"))
	}
	denies := member.DenyByDefault != nil
	switch {
	case spec.GlobalAccessPolicy == networkingv1.GlobalAccessPolicyEnabled && !denies:
		tell(snapshot.Errorf(snapshot.FieldUnsupported, "set spec."+osmPermissiveMode+" to false in its MeshConfig "+osmMeshConfig,
			"globalAccessPolicy is not in force in mesh %s: its permissive traffic policy mode lets everybody call everybody", name).At("globalAccessPolicy"))
	case spec.GlobalAccessPolicy == networkingv1.GlobalAccessPolicyDisabled && denies:
		tell(snapshot.Warnf(snapshot.FieldUnsupported, "set spec."+osmPermissiveMode+" to true in its MeshConfig "+osmMeshConfig+" if access is to be open",
			"globalAccessPolicy has no effect on mesh %s: without its permissive traffic policy mode it denies what no policy allows", name).At("globalAccessPolicy"))
	}
}
