package rbac

import (
	"fmt"
	"slices"
	"strings"

	commonv1 "github.com/meshctl/meshctl/engine/api/common/v1"
	enterprisev1beta1 "github.com/meshctl/meshctl/engine/api/enterprise/v1beta1"
	networkingv1 "github.com/meshctl/meshctl/engine/api/networking/v1"
	observabilityv1 "github.com/meshctl/meshctl/engine/api/observability/v1"
	rbacv1 "github.com/meshctl/meshctl/engine/api/rbac/v1"
	"github.com/meshctl/meshctl/engine/snapshot"
)

// judged is a scope of a Role, with what it lacks for an object; nothing if it allows all of it.
type judged struct {
	name  string
	lacks []string
}

// scopesFor are the scopes of a Role for objects of the kind, and the list in which they are.
func scopesFor(role *rbacv1.Role, object snapshot.APIObject) (list string, out []judged) {
	spec := &role.Spec
	switch o := object.(type) {
	case *networkingv1.TrafficPolicy:
		return judge("trafficPolicyScopes", spec.TrafficPolicyScopes, func(s *rbacv1.TrafficPolicyScope) []string { return trafficLacks(s, &o.Spec) })
	case *networkingv1.AccessPolicy:
		return "accessPolicyScopes", accessScopes(spec.AccessPolicyScopes, &o.Spec)
	case *networkingv1.VirtualMesh:
		return judge("virtualMeshScopes", spec.VirtualMeshScopes, func(s *rbacv1.VirtualMeshScope) []string { return meshLacks(s, &o.Spec) })
	case *enterprisev1beta1.VirtualDestination:
		return judge("virtualDestinationScopes", spec.VirtualDestinationScopes, func(s *rbacv1.VirtualDestinationScope) []string { return virtualLacks(s, &o.Spec) })
	case *enterprisev1beta1.WasmDeployment:
		return judge("wasmDeploymentScopes", spec.WasmDeploymentScopes, func(s *rbacv1.WasmDeploymentScope) []string {
			return uncovered("workloadSelectors", workloadPermits(s.WorkloadSelectors), workloadAreas(o.Spec.WorkloadSelector))
		})
	case *observabilityv1.AccessLogRecord:
		return judge("accessLogRecordScopes", spec.AccessLogRecordScopes, func(s *rbacv1.AccessLogRecordScope) []string {
			return uncovered("workloadSelectors", workloadPermits(s.WorkloadSelectors), workloadAreas(o.Spec.WorkloadSelectors))
		})
	}
	return "scopes for this kind", nil
}

func judge[S any](list string, scopes []S, lacks func(*S) []string) (string, []judged) {
	var out []judged
	for i := range scopes {
		out = append(out, judged{indexed(list, i), lacks(&scopes[i])})
	}
	return list, out
}

func indexed(list string, i int) string { return fmt.Sprintf("%s[%d]", list, i) }

// used is a part of an object that needs an action.
type used struct {
	action string
	set    bool
}

// actionsLack says which actions an object needs and a scope does not have. The empty action needs ALL.
func actionsLack[A ~string](list string, all A, allowed []A, parts []used) []string {
	if slices.Contains(allowed, all) {
		return nil
	}
	var missing []string
	for _, part := range parts {
		if part.set && (part.action == "" || !slices.Contains(allowed, A(part.action))) {
			action := part.action
			if action == "" {
				action = string(all)
			}
			if !slices.Contains(missing, action) {
				missing = append(missing, action)
			}
		}
	}
	if len(missing) == 0 {
		return nil
	}
	return []string{list + " lacks " + strings.Join(missing, ", ")}
}

func trafficLacks(s *rbacv1.TrafficPolicyScope, spec *networkingv1.TrafficPolicySpec) []string {
	var parts []used
	if p := spec.Policy; p != nil {
		parts = []used{
			{string(rbacv1.TrafficPolicyActionTrafficShift), p.TrafficShift != nil},
			{string(rbacv1.TrafficPolicyActionFaultInjection), p.FaultInjection != nil},
			{string(rbacv1.TrafficPolicyActionRequestTimeout), p.RequestTimeout != nil},
			{string(rbacv1.TrafficPolicyActionRetries), p.Retries != nil},
			{string(rbacv1.TrafficPolicyActionCorsPolicy), p.CorsPolicy != nil},
			{string(rbacv1.TrafficPolicyActionMirror), p.Mirror != nil},
			{string(rbacv1.TrafficPolicyActionHeaderManipulation), p.HeaderManipulation != nil},
			{string(rbacv1.TrafficPolicyActionOutlierDetection), p.OutlierDetection != nil},
			{string(rbacv1.TrafficPolicyActionMtlsConfig), p.Mtls != nil},
			{"", p.Csrf != nil},
			{"", p.RateLimit != nil},
		}
	}
	return slices.Concat(
		actionsLack("trafficPolicyActions", rbacv1.TrafficPolicyActionAll, s.TrafficPolicyActions, parts),
		uncovered("destinationSelectors", destinationPermits(s.DestinationSelectors), destinationAreas(spec.DestinationSelector)),
		uncovered("workloadSelectors", workloadPermits(s.WorkloadSelectors), workloadAreas(spec.SourceSelector)),
	)
}

func meshLacks(s *rbacv1.VirtualMeshScope, spec *networkingv1.VirtualMeshSpec) []string {
	return slices.Concat(
		actionsLack("virtualMeshActions", rbacv1.VirtualMeshActionAll, s.VirtualMeshActions, []used{
			{string(rbacv1.VirtualMeshActionMtlsConfig), spec.MtlsConfig != nil},
			{string(rbacv1.VirtualMeshActionFederation), spec.Federation != nil},
			{string(rbacv1.VirtualMeshActionGlobalAccessPolicy), spec.GlobalAccessPolicy != ""},
		}),
		uncovered("meshRefs", refPermits(s.MeshRefs), refAreas(spec.Meshes)),
	)
}

// accessGroup is a scope with both lists, or those with one of them together.
type accessGroup struct {
	name  string
	scope rbacv1.AccessPolicyScope
}

// accessGroups are each scope with both lists, and then those with one of them together.
func accessGroups(scopes []rbacv1.AccessPolicyScope) (out []accessGroup) {
	var together rbacv1.AccessPolicyScope
	var parts []string
	for i := range scopes {
		s, name := &scopes[i], indexed("accessPolicyScopes", i)
		if len(s.IdentitySelectors) > 0 && len(s.DestinationSelectors) > 0 {
			out = append(out, accessGroup{name, *s})
			continue
		}
		together.IdentitySelectors = append(together.IdentitySelectors, s.IdentitySelectors...)
		together.DestinationSelectors = append(together.DestinationSelectors, s.DestinationSelectors...)
		parts = append(parts, name)
	}
	if len(parts) > 0 {
		out = append(out, accessGroup{strings.Join(parts, " with "), together})
	}
	return out
}

// accessScopes judges each scope with both lists, and those with one of them together.
func accessScopes(scopes []rbacv1.AccessPolicyScope, spec *networkingv1.AccessPolicySpec) (out []judged) {
	for _, g := range accessGroups(scopes) {
		out = append(out, judged{g.name, accessLacks(&g.scope, spec)})
	}
	return out
}

func accessLacks(s *rbacv1.AccessPolicyScope, spec *networkingv1.AccessPolicySpec) []string {
	return slices.Concat(
		uncovered("identitySelectors", identityPermits(s.IdentitySelectors), identityAreas(spec.SourceSelector)),
		uncovered("destinationSelectors", destinationPermits(s.DestinationSelectors), destinationAreas(spec.DestinationSelector)),
	)
}

func virtualLacks(s *rbacv1.VirtualDestinationScope, spec *enterprisev1beta1.VirtualDestinationSpec) (out []string) {
	if spec.VirtualMesh != nil {
		out = append(out, uncovered("virtualMeshRefs", refPermits(s.VirtualMeshRefs), refAreas([]commonv1.ObjectRef{*spec.VirtualMesh}))...)
	}
	if spec.MeshList != nil {
		out = append(out, uncovered("meshRefs", refPermits(s.MeshRefs), refAreas(spec.MeshList.Meshes))...)
	}
	if spec.Static != nil {
		out = append(out, uncovered("destinations", namedPermits(services(s.Destinations)), named(services(spec.Static.Destinations)))...)
	}
	if spec.Localized != nil {
		out = append(out, uncovered("destinationSelectors", destinationPermits(s.DestinationSelectors), destinationAreas(spec.Localized.DestinationSelectors))...)
	}
	return out
}

func services(of []enterprisev1beta1.BackingDestination) (out []commonv1.ClusterObjectRef) {
	for _, d := range of {
		if d.KubeService != nil {
			out = append(out, *d.KubeService)
		}
	}
	return out
}
