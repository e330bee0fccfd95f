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

// acceptance is which TrafficPolicies are in force on one Destination.
type acceptance struct {
	applied []snapshot.AppliedTraffic
	// verdicts stand beside the policies that were looked at.
	verdicts []snapshot.Verdict
	// verdictOf is the place of the verdict on each of applied.
	verdictOf []int
}

// claims are the fields that policies in force own, by the requests they take.
type claims map[claimKey]claimed

type claimKey struct{ requests, field string }

type claimed struct {
	value any
	owner snapshot.Ref
}

// accept goes through the policies of a Destination, oldest first, and puts
// each in force unless something in it cannot be, or an older one owns a field
// of it for the same requests. A policy that cannot be keeps its last accepted
// spec, as far as that one still can be.
func (w *world) accept(self int, policies []*trafficBinding, stored *discoveryv1.Destination) *acceptance {
	out := &acceptance{}
	held := claims{}
	viewers := w.topology.Viewers(self)
	target := inventory.DestinationRef(w.inv.Destinations[self])
	for _, p := range policies {
		verdict := snapshot.Verdict{Destination: target}
		spec := &p.policy.Spec
		issues, taken := w.consider(self, viewers, spec, held)
		applied := snapshot.AppliedTraffic{Policy: p.policy, Spec: spec, Generation: p.policy.Generation}
		if snapshot.HasErrors(issues) {
			old := lastGood(stored, p.ref)
			if old == nil || reflect.DeepEqual(&old.Spec, spec) {
				out.verdicts = append(out.verdicts, reject(verdict, p.ref, issues))
				continue
			}
			more, takenByOld := w.consider(self, viewers, &old.Spec, held)
			if snapshot.HasErrors(more) {
				out.verdicts = append(out.verdicts, reject(verdict, p.ref, issues))
				continue
			}
			taken = takenByOld
			applied.Spec, applied.LastGood, applied.Generation = &old.Spec, true, old.ObservedGeneration
			issues = append(issues, snapshot.Warnf(snapshot.LastGoodInForce, "mend the policy; until then the last accepted one holds",
				"its last accepted version stays in force"))
		}
		for key, value := range taken {
			held[key] = claimed{value, p.ref}
		}
		verdict.Accepted, verdict.Order = !applied.LastGood, uint32(len(out.applied))
		out.applied = append(out.applied, applied)
		out.verdictOf = append(out.verdictOf, len(out.verdicts))
		out.verdicts = append(out.verdicts, reject(verdict, p.ref, issues))
	}
	w.warnOfShadows(self, out)
	return out
}

// reject puts issues on a verdict.
func reject(v snapshot.Verdict, policy snapshot.Ref, issues []snapshot.Issue) snapshot.Verdict {
	for _, issue := range issues {
		v.Issues = append(v.Issues, issue.On(policy, v.Destination))
	}
	return v
}

// consider says what keeps a spec from being in force beside the fields held
// already, and which fields it would take.
func (w *world) consider(self int, viewers []*snapshot.MeshPlan, spec *networkingv1.TrafficPolicySpec, held claims) ([]snapshot.Issue, map[claimKey]any) {
	taken := map[claimKey]any{}
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
	if issues := w.inexpressible(self, viewers, spec); len(issues) > 0 {
		add(issues...)
		if snapshot.HasErrors(issues) {
			return issues, taken // what else there is to say would be about another mesh
		}
	}
	add(checkSources(spec)...)
	add(checkMatchers(spec)...)
	add(w.checkPorts(self, spec.Policy)...)
	clusters := map[string][]string{}
	for _, viewer := range viewers {
		requests := requestsOf(spec, viewer.Cluster, clusters)
		if len(requests) == 0 {
			continue
		}
		s := &setting{world: w, self: self, spec: spec, viewer: viewer}
		add(s.intersecting()...)
		for i := range features {
			f := &features[i]
			value := f.value(spec.Policy)
			if value == nil {
				continue
			}
			if f.check != nil {
				add(f.check(s)...)
			}
			asked := requests
			if f.view != nil {
				asked = []string{"view " + viewer.Cluster}
			}
			for _, request := range asked {
				key := claimKey{request, f.field}
				if other, ok := held[key]; ok && !reflect.DeepEqual(other.value, value) {
					add(fieldConflict(f.field, other.owner))
				}
				taken[key] = value
			}
		}
	}
	return issues, taken
}

func fieldConflict(field string, owner snapshot.Ref) snapshot.Issue {
	return snapshot.Errorf(snapshot.FieldConflict,
		"change one of the two, or give this one httpRequestMatchers or a sourceSelector of its own",
		"%s is set differently by the older %s %s.%s for the same requests", field, owner.Kind, owner.Name, owner.Namespace)
}

// requestsOf tells apart the requests that a spec is about, per cluster, and
// remembers them; none if the spec has no say there.
func requestsOf(spec *networkingv1.TrafficPolicySpec, cluster string, seen map[string][]string) []string {
	keys, ok := seen[cluster]
	if !ok {
		for _, m := range matches(spec, cluster) {
			keys = append(keys, cluster+" "+matchKey(m))
		}
		seen[cluster] = keys
	}
	return keys
}

// lastGood is what of a policy was last in force on a Destination; nil if nothing.
func lastGood(stored *discoveryv1.Destination, policy snapshot.Ref) *discoveryv1.AppliedTrafficPolicy {
	if stored == nil {
		return nil
	}
	for i := range stored.Status.AppliedTrafficPolicies {
		a := &stored.Status.AppliedTrafficPolicies[i]
		if a.Ref == (commonv1.ObjectRef{Name: policy.Name, Namespace: policy.Namespace}) {
			return a
		}
	}
	return nil
}
