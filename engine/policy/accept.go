package policy

import (
	"reflect"
	"slices"

	commonv1 "github.com/meshctl/meshctl/engine/api/common/v1"
	discoveryv1 "github.com/meshctl/meshctl/engine/api/discovery/v1"
	networkingv1 "github.com/meshctl/meshctl/engine/api/networking/v1"
	"github.com/meshctl/meshctl/engine/inventory"
	"github.com/meshctl/meshctl/engine/snapshot"
)

// acceptance says which TrafficPolicies are in force on one Destination.
type acceptance struct {
	applied []snapshot.AppliedTraffic
	// verdicts are in the order of the policies.
	verdicts []snapshot.Verdict
	// verdictIndex is the index of the verdict of each of applied.
	verdictIndex []int
	// verdictOf and appliedOf are the indices of a policy's verdict, and of what is in
	// force of it.
	verdictOf, appliedOf map[*networkingv1.TrafficPolicy]int
}

// fieldOwners are the fields that the policies in force set, by the requests that
// they select.
type fieldOwners map[fieldKey]fieldOwner

type fieldKey struct{ requests, field string }

type fieldOwner struct {
	value any
	owner snapshot.Ref
}

// acceptPolicies accepts the policies of a Destination, oldest first. It rejects a
// policy with an invalid field, or with a field that an older policy sets for the
// same requests. A rejected policy keeps its last accepted spec if that one is still
// valid; hand-written objects that intersect with it keep a policy out, but do not withdraw
// what is in force. A policy whose targets disappear after it was accepted stays in force without
// them: what else it sets, such as timeouts, and its other targets must not go with
// them.
func (env *environment) acceptPolicies(self int, policies []*trafficBinding, stored *discoveryv1.Destination) *acceptance {
	out := &acceptance{
		verdictOf: make(map[*networkingv1.TrafficPolicy]int, len(policies)), appliedOf: make(map[*networkingv1.TrafficPolicy]int, len(policies)),
		applied: make([]snapshot.AppliedTraffic, 0, len(policies)), verdicts: make([]snapshot.Verdict, 0, len(policies)),
	}
	last := lastGoodOf(stored)
	owners := fieldOwners{}
	viewers := env.distinctViewers(self, policies, last)
	target := inventory.DestinationRef(env.inv.Destinations[self])
	for _, p := range policies {
		verdict := snapshot.Verdict{Destination: target}
		out.verdictOf[p.policy] = len(out.verdicts)
		spec, old := &p.policy.Spec, last.of(p.ref)
		evaluate := func(spec *networkingv1.TrafficPolicySpec, old *discoveryv1.AppliedTrafficPolicy) ([]snapshot.Issue, map[fieldKey]any) {
			if beyond := ownIssues(p.ref, spec, out.applied); len(beyond) > 0 {
				return beyond, nil
			}
			return env.evaluate(self, viewers, spec, old, owners.of(p.ref))
		}
		issues, taken := evaluate(spec, old)
		applied := snapshot.AppliedTraffic{Policy: p.policy, Spec: spec, Generation: p.policy.Generation}
		if snapshot.Rejected(issues) {
			issues, _ = evaluate(spec, nil) // no target is missing if nothing is in force
			if old == nil {
				out.verdicts = append(out.verdicts, withIssues(verdict, p.ref, issues))
				continue
			}
			more, takenByOld := evaluate(&old.Spec, old)
			if rejectsInForce(more) {
				out.verdicts = append(out.verdicts, withIssues(verdict, p.ref, issues))
				continue
			}
			taken, issues = takenByOld, lastGoodIssues(issues, more, reflect.DeepEqual(&old.Spec, spec))
			applied.Spec, applied.LastGood, applied.Generation = &old.Spec, true, old.ObservedGeneration
		}
		for key, value := range taken {
			owners[key] = fieldOwner{value, p.ref}
		}
		applied.Missing = slices.ContainsFunc(issues, func(i snapshot.Issue) bool { return i.Code == snapshot.TargetMissing })
		verdict.Accepted, verdict.Order = !snapshot.Rejected(issues), uint32(len(out.applied))
		out.appliedOf[p.policy] = len(out.applied)
		out.applied = append(out.applied, applied)
		out.verdictIndex = append(out.verdictIndex, len(out.verdicts))
		out.verdicts = append(out.verdicts, withIssues(verdict, p.ref, issues))
	}
	env.warnOfShadows(self, out)
	return out
}

// withIssues adds issues to a verdict.
func withIssues(v snapshot.Verdict, policy snapshot.Ref, issues []snapshot.Issue) snapshot.Verdict {
	for _, issue := range issues {
		v.Issues = append(v.Issues, issue.On(policy, v.Destination))
	}
	return v
}

// evaluate checks a spec against the fields that older policies own. Old is the last
// accepted version of the policy, or nil. It returns the issues and the fields that the
// spec sets.
func (env *environment) evaluate(self int, viewers []*snapshot.MeshPlan, spec *networkingv1.TrafficPolicySpec, old *discoveryv1.AppliedTrafficPolicy, owners fieldOwners) ([]snapshot.Issue, map[fieldKey]any) {
	taken := map[fieldKey]any{}
	if spec.Policy == nil {
		return nil, taken
	}
	var issues []snapshot.Issue
	add := func(more ...snapshot.Issue) {
		for _, issue := range more {
			if !slices.Contains(issues, issue) {
				issues = append(issues, issue)
			}
		}
	}
	if issue, ambient := ambientRefusal(env.inv.Destinations[self], env.topology.MeshOf(env.inv.Destinations[self])); ambient {
		return []snapshot.Issue{issue}, taken
	}
	if issues := env.unsupportedFields(self, viewers, spec); len(issues) > 0 {
		add(issues...)
		if snapshot.Rejected(issues) {
			return issues, taken // the other checks assume that the mesh supports the fields
		}
	}
	add(checkSources(spec)...)
	add(checkMatchers(spec)...)
	add(env.checkPorts(self, spec.Policy)...)
	of := fieldContext{env: env, index: self, spec: spec}
	if old != nil {
		of.lastAccepted = &old.Spec
	}
	clusters, seen := map[string][]string{}, false
	for _, viewer := range viewers {
		requests := env.requestsOf(spec, viewer.Cluster, clusters)
		if len(requests) == 0 {
			continue
		}
		c := of
		c.viewer, seen = viewer, true
		add(c.handWrittenIssues()...)
		for i := range features {
			f := &features[i]
			value := f.value(spec.Policy)
			if value == nil {
				continue
			}
			if f.check != nil {
				add(at(f.field, f.check(&c))...)
			}
			asked := requests
			if f.view != nil {
				asked = []string{"view " + viewer.Cluster}
			}
			for _, request := range asked {
				key := fieldKey{request, f.field}
				if other, ok := owners[key]; ok && !reflect.DeepEqual(other.value, value) {
					add(fieldConflict(f.field, other.owner))
				}
				taken[key] = value
			}
		}
		add(perTryIssues(requests, taken, owners)...)
	}
	if !seen {
		add(of.unknownTargets()...)
	}
	return issues, taken
}

// at sets the field of issues that have none.
func at(field string, issues []snapshot.Issue) []snapshot.Issue {
	for i := range issues {
		if issues[i].Field == "" {
			issues[i].Field = field
		}
	}
	return issues
}

func fieldConflict(field string, owner snapshot.Ref) snapshot.Issue {
	return snapshot.Errorf(snapshot.FieldConflict,
		"change one of the two, or restrict this one with httpRequestMatchers or a sourceSelector",
		"the older %[2]s %[3]s sets %[1]s differently for the same requests", field, owner.Kind, owner.Identity()).At(field).CausedBy(owner)
}

// requestsOf identifies the requests that a spec selects in a cluster; none if the
// spec does not apply there. It caches the answer in seen.
func (env *environment) requestsOf(spec *networkingv1.TrafficPolicySpec, cluster string, seen map[string][]string) []string {
	keys, ok := seen[cluster]
	if !ok {
		for _, m := range matches(spec, cluster) {
			keys = append(keys, cluster+" "+env.matchKey(m))
		}
		seen[cluster] = keys
	}
	return keys
}

// lastGood are the versions of policies that were last in force on a Destination.
type lastGood map[commonv1.ClusterObjectRef]*discoveryv1.AppliedTrafficPolicy

func lastGoodOf(stored *discoveryv1.Destination) lastGood {
	if stored == nil {
		return nil
	}
	out := make(lastGood, len(stored.Status.AppliedTrafficPolicies))
	for i := range stored.Status.AppliedTrafficPolicies {
		a := &stored.Status.AppliedTrafficPolicies[i]
		of := commonv1.ClusterObjectRef{Name: a.Ref.Name, Namespace: a.Ref.Namespace, ClusterName: a.ClusterName}
		if out[of] == nil {
			out[of] = a
		}
	}
	return out
}

// of is the version of a policy; nil if none was in force.
func (l lastGood) of(policy snapshot.Ref) *discoveryv1.AppliedTrafficPolicy {
	return l[commonv1.ClusterObjectRef{Name: policy.Name, Namespace: policy.Namespace, ClusterName: policy.Cluster}]
}
