package policy

import (
	"reflect"
	"slices"

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

	policy    *networkingv1.AccessPolicy
	ref       snapshot.Ref
	selected  []int
	rule      *snapshot.AccessRule
	workloads inventory.WorkloadList
	issues    []snapshot.Issue
	enforcementRecord
	filters filterRecord
	// plan is the last verdict, and stale if it must be made again.
	plan  *snapshot.PolicyPlan
	stale bool
}

func (env *environment) newTrafficBinding(p *networkingv1.TrafficPolicy, old *trafficBinding) *trafficBinding {
	b := &trafficBinding{stale: true, policy: p, ref: snapshot.RefOf(snapshot.TrafficPolicy, p)}
	if old != nil {
		b.plan = old.plan // to reuse
	}
	if !env.scope.Counts(p.Namespace) {
		b.issues = env.scope.Issues(b.ref)
		return b
	}
	selected, missing := env.inv.SelectDestinations(p.Spec.DestinationSelector)
	b.selected = selected
	b.issues = append(env.scope.Issues(b.ref), env.inv.SelectionIssues(b.ref, "destinationSelector", selected, missing)...)
	b.workloads = env.inv.SelectWorkloads(env.topology.CallingMeshes(selected), p.Spec.SourceSelector)
	if b.workloads.Count == 0 && len(selected) > 0 {
		b.issues = append(b.issues, snapshot.Warnf(snapshot.SelectsNothing,
			"correct sourceSelector, or start the workloads", "sourceSelector matches no workload that could call these destinations").At("sourceSelector").On(b.ref, snapshot.Ref{}))
	}
	if p.Spec.Policy == nil || reflect.ValueOf(*p.Spec.Policy).IsZero() {
		b.issues = append(b.issues, snapshot.Warnf(snapshot.SelectsNothing, "set a field of spec.policy", "the policy is empty").At("policy").On(b.ref, snapshot.Ref{}))
	}
	if old != nil && slices.Equal(old.selected, b.selected) {
		b.selected = old.selected
	}
	return b
}

func (env *environment) newAccessBinding(p *networkingv1.AccessPolicy, old *accessBinding) *accessBinding {
	b := &accessBinding{stale: true, policy: p, ref: snapshot.RefOf(snapshot.AccessPolicy, p)}
	if old != nil {
		b.plan = old.plan // to reuse
	}
	rule, issues := env.accessRule(p)
	b.rule = rule
	if old != nil && reflect.DeepEqual(old.rule, rule) {
		b.rule = old.rule
	}
	if !env.scope.Counts(p.Namespace) {
		b.issues = env.scope.Issues(b.ref)
		return b
	}
	selected, missing := env.inv.SelectDestinations(p.Spec.DestinationSelector)
	b.selected = selected
	b.issues = append(env.scope.Issues(b.ref), env.inv.SelectionIssues(b.ref, "destinationSelector", selected, missing)...)
	b.workloads = env.inv.SelectIdentities(env.topology.CallingMeshes(selected), p.Spec.SourceSelector)
	if env.anyByIdentity(selected) {
		for _, issue := range issues {
			b.issues = append(b.issues, issue.On(b.ref, snapshot.Ref{}))
		}
	}
	return b
}
