package policy

import (
	"reflect"
	"slices"

	discoveryv1 "github.com/meshctl/meshctl/engine/api/discovery/v1"
	networkingv1 "github.com/meshctl/meshctl/engine/api/networking/v1"
	"github.com/meshctl/meshctl/engine/inventory"
	"github.com/meshctl/meshctl/engine/snapshot"
)

// trafficBinding is a TrafficPolicy with the Destinations and callers that it
// selects.
type trafficBinding struct {
	policy    *networkingv1.TrafficPolicy
	ref       snapshot.Ref
	selected  []int
	workloads inventory.WorkloadList
	issues    []snapshot.Issue
	enforcementRecord
	filters filterRecord
	// plan is the last verdict, and stale if it must be made again.
	plan  *snapshot.PolicyPlan
	stale bool
}

// accessBinding is an AccessPolicy with the Destinations that it selects and the
// callers that it allows.
type accessBinding struct {
	// callers, uncovered and fields are caches, by mesh, by account, and by dialect.
	callers   map[snapshot.Ref]*callers
	uncovered map[accountKey]snapshot.Ref
	fields    map[*snapshot.Dialect][]snapshot.Issue
	// lastGood are the rules of accepted versions that were asked for, and wasGood those of the binding before, to reuse.
	lastGood, wasGood []*snapshot.AccessRule

	policy    *networkingv1.AccessPolicy
	ref       snapshot.Ref
	selected  []int
	rule      *snapshot.AccessRule
	workloads inventory.WorkloadList
	issues    []snapshot.Issue
	enforcementRecord
	filters filterRecord
	network networkRecord
	// plan is the last verdict, and stale if it must be made again.
	plan  *snapshot.PolicyPlan
	stale bool
}

func (env *environment) newTrafficBinding(p *networkingv1.TrafficPolicy, old *trafficBinding) *trafficBinding {
	b := &trafficBinding{stale: true, policy: p, ref: snapshot.RefOf(snapshot.TrafficPolicy, p)}
	if old != nil {
		b.plan = old.plan // to reuse
	}
	if b.issues = append(env.scope.Issues(b.ref), env.local[b.ref]...); !env.scope.CountsPolicy(b.ref) || snapshot.Rejected(b.issues) {
		return b
	}
	selected, missing := env.inv.SelectDestinations(p.Spec.DestinationSelector)
	selected = within(env, b.ref, selected)
	b.selected = selected
	b.issues = append(b.issues, env.inv.SelectionIssues(b.ref, "destinationSelector", selected, missing)...)
	b.workloads = env.inv.SelectWorkloads(env.topology.CallingMeshes(selected), p.Spec.SourceSelector)
	b.issues = append(b.issues, ambientCallers(env, b.ref, selected, "", func(k *discoveryv1.KubernetesWorkload) bool {
		return inventory.MatchesWorkload(p.Spec.SourceSelector, k)
	})...)
	if b.workloads.Count == 0 && len(selected) > 0 {
		b.issues = append(b.issues, snapshot.Warnf(snapshot.SelectsNothing,
			"correct sourceSelector, or start the workloads", "sourceSelector matches no workload that could call these destinations").At("sourceSelector").On(b.ref, snapshot.Ref{}))
	}
	if b.workloads.Count > 0 && b.workloads.Gateways == b.workloads.Count && setsRoutes(p.Spec.Policy) {
		b.issues = append(b.issues, snapshot.Warnf(snapshot.SelectsNothing,
			"select workloads with sidecars; write what is for gateways into the VirtualServices or routes that are bound to them",
			"sourceSelector matches only gateways, where no route of a policy applies: what routes requests is generated for sidecars").At("sourceSelector").On(b.ref, snapshot.Ref{}))
	}
	if p.Spec.Policy == nil || reflect.ValueOf(*p.Spec.Policy).IsZero() {
		b.issues = append(b.issues, snapshot.Warnf(snapshot.SelectsNothing, "set a field of spec.policy", "the policy is empty").At("policy").On(b.ref, snapshot.Ref{}))
	}
	if old != nil && slices.Equal(old.selected, b.selected) {
		b.selected = old.selected
	}
	return b
}

// setsRoutes reports whether a policy sets anything of routes. How services are connected to is for gateways as well (istio.io:
// VirtualService.gateways; DestinationRules have no such field).
func setsRoutes(p *networkingv1.Policy) bool {
	if p == nil {
		return false
	}
	routes := *p
	routes.OutlierDetection, routes.Mtls = nil, nil
	return !reflect.ValueOf(routes).IsZero()
}

func (env *environment) newAccessBinding(p *networkingv1.AccessPolicy, old *accessBinding) *accessBinding {
	b := &accessBinding{stale: true, policy: p, ref: snapshot.RefOf(snapshot.AccessPolicy, p)}
	if old != nil {
		b.plan, b.wasGood = old.plan, old.lastGood // to reuse
	}
	rule, issues := readSources(p, env.inv, env.topology)
	b.rule = rule
	if old != nil && reflect.DeepEqual(old.rule, rule) {
		b.rule = old.rule
	}
	if b.issues = append(env.scope.Issues(b.ref), env.local[b.ref]...); !env.scope.CountsPolicy(b.ref) || snapshot.Rejected(b.issues) {
		return b
	}
	selected, missing := env.inv.SelectDestinations(p.Spec.DestinationSelector)
	selected, beyond := withinAccess(env, b.ref, within(env, b.ref, selected))
	b.selected = selected
	b.issues = append(append(b.issues, beyond...), env.inv.SelectionIssues(b.ref, "destinationSelector", selected, missing)...)
	b.workloads = env.inv.SelectIdentities(env.topology.CallingMeshes(selected), p.Spec.SourceSelector)
	if len(p.Spec.SourceSelector) > 0 {
		b.issues = append(b.issues, ambientCallers(env, b.ref, selected, doesOf(&p.Spec).does, func(k *discoveryv1.KubernetesWorkload) bool {
			return inventory.SelectsIdentity(p.Spec.SourceSelector, k)
		})...)
	}
	if env.anyByIdentity(selected) {
		for _, issue := range issues {
			b.issues = append(b.issues, issue.On(b.ref, snapshot.Ref{}))
		}
	}
	return b
}

// anyByIdentity reports whether any of the Destinations is in a mesh that identifies
// callers by certificate, or there are no Destinations.
func (env *environment) anyByIdentity(selected []int) bool {
	return len(selected) == 0 || slices.ContainsFunc(selected, func(i int) bool {
		mesh := env.topology.MeshOf(env.inv.Destinations[i])
		return mesh == nil || !mesh.Dialect.ByAccount
	})
}
