package virtualmesh

import (
	networkingv1 "github.com/meshctl/meshctl/engine/api/networking/v1"
	"github.com/meshctl/meshctl/engine/snapshot"
)

// unsupportedIssues say what a member does not get from its VirtualMesh.
func unsupportedIssues(spec *networkingv1.VirtualMeshSpec, member *snapshot.MeshPlan) []snapshot.Issue {
	name, dialect := member.Ref.Name, member.Dialect
	var issues []snapshot.Issue
	if ok, why := dialect.Supports(snapshot.VirtualMesh, "federation"); !ok && federates(spec.Federation) {
		issues = append(issues, snapshot.Warnf(snapshot.FieldUnsupported,
			"remove the mesh from spec.meshes; its services cannot be visible in other clusters",
			"federation does not include mesh %s: %s", name, why).At("federation"))
	}
	// A mesh without SPIFFE identities will never have certificates of a shared root.
	if ok, why := dialect.Supports(snapshot.VirtualMesh, "mtlsConfig"); !ok && !dialect.SPIFFE && spec.MtlsConfig != nil {
		issues = append(issues, snapshot.Warnf(snapshot.FieldUnsupported, "configure its certificates where the mesh is installed",
			"mtlsConfig has no effect on mesh %s: %s", name, why).At("mtlsConfig"))
	}
	if spec.MtlsConfig != nil && spec.MtlsConfig.Shared != nil && member.ForeignCA != "" {
		issues = append(issues, snapshot.Errorf(snapshot.FieldUnsupported,
			"have who signs them sign with the root of the VirtualMesh, and remove mtlsConfig; or let the control plane of the mesh sign them",
			"mtlsConfig.shared has no effect on mesh %s: its control plane does not sign the certificates of proxies (%s)", name, member.ForeignCA).At("mtlsConfig.shared"))
	}
	return append(issues, accessIssues(spec.GlobalAccessPolicy, member)...)
}

// accessIssues say where globalAccessPolicy has no effect on a member.
func accessIssues(asked networkingv1.GlobalAccessPolicy, member *snapshot.MeshPlan) []snapshot.Issue {
	name := member.Ref.Name
	setting := member.AccessSetting
	if setting == nil {
		ok, why := member.Dialect.Supports(snapshot.VirtualMesh, "globalAccessPolicy")
		if ok || asked != networkingv1.GlobalAccessPolicyEnabled {
			return nil
		}
		return []snapshot.Issue{snapshot.Errorf(snapshot.FieldUnsupported, "remove the mesh from spec.meshes",
			"globalAccessPolicy is not in force in mesh %s: %s", name, why).At("globalAccessPolicy")}
	}
	field := "spec." + setting.Field + " of " + setting.Ref.Kind.String() + " " + setting.Ref.Name
	switch {
	case asked == networkingv1.GlobalAccessPolicyEnabled && member.Open:
		return []snapshot.Issue{snapshot.Errorf(snapshot.FieldUnsupported, "change "+field,
			"globalAccessPolicy is not in force in mesh %s: %s allows all callers", name, field).At("globalAccessPolicy")}
	case asked == networkingv1.GlobalAccessPolicyDisabled && !member.Open:
		return []snapshot.Issue{snapshot.Warnf(snapshot.FieldUnsupported, "change "+field+" to allow all callers",
			"globalAccessPolicy has no effect on mesh %s: because of %s it denies what no policy allows", name, field).At("globalAccessPolicy")}
	default:
		return nil
	}
}
