package rbac_test

import (
	"slices"

	commonv1 "github.com/meshctl/meshctl/engine/api/common/v1"
	enterprisev1beta1 "github.com/meshctl/meshctl/engine/api/enterprise/v1beta1"
	observabilityv1 "github.com/meshctl/meshctl/engine/api/observability/v1"
	rbacv1 "github.com/meshctl/meshctl/engine/api/rbac/v1"
)

// This file has the kinds of the enterprise groups: VirtualDestinations and AccessLogRecords, which have scopes, and ServiceDependencies, which
// have none and which Roles never refuse.

// scopes adds those of a drawn Role for these kinds.
func (m matrix) scopes(spec *rbacv1.RoleSpec) {
	for range m.IntN(3) {
		scope := rbacv1.VirtualDestinationScope{VirtualMeshRefs: m.refs("v1", "v2", "*"), MeshRefs: m.refs("m1", "m2", "*")}
		scope.DestinationSelectors = append(randomSelectors(m.Rand, true), matcher("a", "*", star)...)
		for range m.IntN(3) {
			scope.Destinations = append(scope.Destinations, m.backing("*"))
		}
		spec.VirtualDestinationScopes = append(spec.VirtualDestinationScopes, scope)
	}
	for range m.IntN(3) {
		spec.AccessLogRecordScopes = append(spec.AccessLogRecordScopes, rbacv1.AccessLogRecordScope{WorkloadSelectors: randomWorkloads(m.Rand, true)})
	}
}

// generousScopes allow much.
func (m matrix) generousScopes(spec *rbacv1.RoleSpec, all []commonv1.DestinationSelector) {
	every := []commonv1.ObjectRef{{Name: "*", Namespace: "*"}}
	spec.VirtualDestinationScopes = []rbacv1.VirtualDestinationScope{{
		VirtualMeshRefs: every, MeshRefs: every, DestinationSelectors: all,
		Destinations: []enterprisev1beta1.BackingDestination{{KubeService: &commonv1.ClusterObjectRef{Name: "*", Namespace: []string{"*", "a"}[m.IntN(2)], ClusterName: "*"}}},
	}}
	spec.AccessLogRecordScopes = []rbacv1.AccessLogRecordScope{{WorkloadSelectors: workloads([]string{"*", "a"}[m.IntN(2)], "*", star)}}
}

func (m matrix) refs(names ...string) (out []commonv1.ObjectRef) {
	for _, name := range pick(m.Rand, 3, names...) {
		out = append(out, commonv1.ObjectRef{Name: name, Namespace: home})
	}
	return out
}

// backing is a service, or with further names a part of a scope.
func (m matrix) backing(more ...string) enterprisev1beta1.BackingDestination {
	one := func(of ...string) string {
		of = append(of, more...)
		return of[m.IntN(len(of))]
	}
	return enterprisev1beta1.BackingDestination{KubeService: &commonv1.ClusterObjectRef{Name: one("n", "m"), Namespace: one("a", "b"), ClusterName: one("x", "y")}}
}

func (m matrix) virtual() *enterprisev1beta1.VirtualDestination {
	v := &enterprisev1beta1.VirtualDestination{Spec: enterprisev1beta1.VirtualDestinationSpec{
		Hostname: "n.global", Port: &enterprisev1beta1.VirtualDestinationPort{Number: 80, Protocol: "HTTP"},
	}}
	if m.IntN(2) == 0 {
		v.Spec.VirtualMesh = &commonv1.ObjectRef{Name: []string{"v1", "v2", "v3"}[m.IntN(3)], Namespace: home}
	} else {
		v.Spec.MeshList = &enterprisev1beta1.MeshList{Meshes: m.refs("m1", "m2", "m3")}
	}
	if m.IntN(2) == 0 {
		v.Spec.Static = &enterprisev1beta1.StaticDestinations{}
		for range 1 + m.IntN(2) {
			v.Spec.Static.Destinations = append(v.Spec.Static.Destinations, m.backing())
		}
	} else {
		v.Spec.Localized = &enterprisev1beta1.LocalizedDestinations{DestinationSelectors: append(randomSelectors(m.Rand, false), matcher("a", "x", nil)...)}
	}
	return v
}

func (m matrix) logs() *observabilityv1.AccessLogRecord {
	return &observabilityv1.AccessLogRecord{Spec: observabilityv1.AccessLogRecordSpec{WorkloadSelectors: randomWorkloads(m.Rand, false)}}
}

func (m matrix) dependency() *enterprisev1beta1.ServiceDependency {
	return &enterprisev1beta1.ServiceDependency{Spec: enterprisev1beta1.ServiceDependencySpec{DestinationSelectors: randomSelectors(m.Rand, false)}}
}

func virtualByModel(s rbacv1.VirtualDestinationScope, v *enterprisev1beta1.VirtualDestinationSpec) bool {
	for _, mesh := range meshesOf(v) {
		if !refByModel(s.MeshRefs, mesh) {
			return false
		}
	}
	if v.VirtualMesh != nil && !refByModel(s.VirtualMeshRefs, *v.VirtualMesh) {
		return false
	}
	if v.Static != nil {
		is := func(allowed, name string) bool { return allowed == "*" || allowed == name }
		for _, d := range v.Static.Destinations {
			if !slices.ContainsFunc(s.Destinations, func(of enterprisev1beta1.BackingDestination) bool {
				a, b := of.KubeService, d.KubeService
				return is(a.Name, b.Name) && is(a.Namespace, b.Namespace) && is(a.ClusterName, b.ClusterName)
			}) {
				return false
			}
		}
		return true
	}
	return !slices.ContainsFunc(things(), func(x thing) bool {
		return selected(v.Localized.DestinationSelectors, x) && !permitted(s.DestinationSelectors, x)
	})
}

func meshesOf(v *enterprisev1beta1.VirtualDestinationSpec) []commonv1.ObjectRef {
	if v.MeshList == nil {
		return nil
	}
	return v.MeshList.Meshes
}

func refByModel(allowed []commonv1.ObjectRef, ref commonv1.ObjectRef) bool {
	return slices.ContainsFunc(allowed, func(r commonv1.ObjectRef) bool {
		return (r.Name == "*" || r.Name == ref.Name) && (r.Namespace == "*" || r.Namespace == ref.Namespace)
	})
}

func logsByModel(s rbacv1.AccessLogRecordScope, r *observabilityv1.AccessLogRecordSpec) bool {
	asServices := func(of []commonv1.WorkloadSelector) (out []commonv1.DestinationSelector) {
		for _, w := range of {
			out = append(out, commonv1.DestinationSelector{KubeServiceMatcher: (*commonv1.KubeServiceMatcher)(w.KubeWorkloadMatcher)})
		}
		return out
	}
	return !slices.ContainsFunc(things(), func(x thing) bool {
		return selected(asServices(r.WorkloadSelectors), x) && !permitted(asServices(s.WorkloadSelectors), x)
	})
}
