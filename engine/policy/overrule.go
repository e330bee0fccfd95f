package policy

import (
	"cmp"
	"maps"
	"reflect"
	"slices"

	networkingv1 "github.com/meshctl/meshctl/engine/api/networking/v1"
	"github.com/meshctl/meshctl/engine/snapshot"
)

// compareAuthority orders policies: those of the management cluster before those of registered ones.
func compareAuthority(a, b snapshot.Ref) int {
	rank := func(r snapshot.Ref) int { return min(len(r.Cluster), 1) }
	return cmp.Compare(rank(a), rank(b))
}

// of are the owners of fields that a policy is compared with request by request. What one of a registered cluster may say beside
// those of the management cluster is decided by what their routes do; see overruledFields.
func (o fieldOwners) of(policy snapshot.Ref) fieldOwners {
	if policy.Cluster == "" {
		return o
	}
	out := maps.Clone(o)
	maps.DeleteFunc(out, func(_ fieldKey, owner fieldOwner) bool { return owner.owner.Cluster == "" })
	return out
}

// ownIssues are the issues with a spec that only a policy of a registered cluster can have. Applied are the policies that have
// precedence.
func ownIssues(policy snapshot.Ref, spec *networkingv1.TrafficPolicySpec, applied []snapshot.AppliedTraffic) []snapshot.Issue {
	if policy.Cluster == "" || spec.Policy == nil {
		return nil
	}
	return append(reachOf(policy).beyond(spec), overruledFields(policy, spec, applied)...)
}

// overruledFields are the conflicts of a spec with policies of the management cluster. Its routes come before theirs where they are
// more specific, and have then what the covered one says; see inherit. So they may add to it, and may not say something else. Where a
// route would take only some of the requests of theirs, what they say could not be kept.
func overruledFields(policy snapshot.Ref, spec *networkingv1.TrafficPolicySpec, applied []snapshot.AppliedTraffic) (issues []snapshot.Issue) {
	for i := range applied {
		hub := &applied[i]
		if hub.Policy.InCluster != "" || !hasRoutes(hub.Spec.Policy) {
			continue
		}
		owner := snapshot.RefOf(snapshot.TrafficPolicy, hub.Policy)
		covered, apart := false, false
		for _, m := range matches(spec, policy.Cluster) {
			for _, h := range matches(hub.Spec, policy.Cluster) {
				switch {
				case disjoint(h, m):
				case covers(h, m):
					covered = true
				case compareMatches(h, m) > 0:
					apart = true
				}
			}
		}
		if apart {
			issues = append(issues, snapshot.Errorf(snapshot.FieldConflict, "write the same httpRequestMatchers as that policy, or none that match its requests",
				"TrafficPolicy %s of the management cluster selects some of the same requests", owner.Identity()).At("httpRequestMatchers").CausedBy(owner))
		}
		for k := range features {
			f := &features[k]
			if mine, theirs := f.value(spec.Policy), f.value(hub.Spec.Policy); covered && mine != nil && theirs != nil && !reflect.DeepEqual(mine, theirs) {
				issues = append(issues, snapshot.Errorf(snapshot.FieldConflict, "leave "+f.field+" out, or ask an administrator of the management cluster to change it there",
					"TrafficPolicy %s of the management cluster sets %s differently for the same requests", owner.Identity(), f.field).At(f.field).CausedBy(owner))
			}
		}
	}
	return issues
}

// hasRoutes reports whether a policy sets anything of routes.
func hasRoutes(p *networkingv1.Policy) bool {
	if p == nil {
		return false
	}
	for i := range features {
		if f := &features[i]; f.route != nil && f.value(p) != nil {
			return true
		}
	}
	return false
}

// disjoint reports whether certainly no request matches both.
func disjoint(a, b snapshot.Match) bool {
	if a.SourceNamespace != "" && b.SourceNamespace != "" && a.SourceNamespace != b.SourceNamespace {
		return true
	}
	for label, value := range a.SourceLabels {
		if other, ok := b.SourceLabels[label]; ok && other != value {
			return true
		}
	}
	x, y := a.Request, b.Request
	if x == nil || y == nil {
		return false
	}
	if x.Method != "" && y.Method != "" && x.Method != y.Method {
		return true
	}
	return x.Uri != nil && y.Uri != nil && x.Uri.Exact != "" && y.Uri.Exact != "" && !x.Uri.IgnoreCase && !y.Uri.IgnoreCase && x.Uri.Exact != y.Uri.Exact
}

// inherit gives a new route of a policy of a registered cluster what the policies of the management cluster say for its requests:
// those of the route that would take them otherwise.
func inherit(env *environment, self int, viewer *snapshot.MeshPlan, policy snapshot.Ref, m snapshot.Match, applied []snapshot.AppliedTraffic, action *snapshot.Action) {
	if policy.Cluster == "" {
		return
	}
	var from *snapshot.Match
	each := func(yield func(a *snapshot.AppliedTraffic, h snapshot.Match)) {
		for i := range applied {
			if a := &applied[i]; a.Policy.InCluster == "" && hasRoutes(a.Spec.Policy) {
				for _, h := range matches(a.Spec, viewer.Cluster) {
					yield(a, h)
				}
			}
		}
	}
	each(func(_ *snapshot.AppliedTraffic, h snapshot.Match) {
		if covers(h, m) && (from == nil || compareMatches(h, *from) < 0) {
			from = &h
		}
	})
	if from == nil {
		return
	}
	key := env.matchKey(*from)
	each(func(a *snapshot.AppliedTraffic, h snapshot.Match) {
		if env.matchKey(h) == key {
			c := &fieldContext{env: env, index: self, spec: a.Spec, viewer: viewer}
			c.setRoute(snapshot.RefOf(snapshot.TrafficPolicy, a.Policy), action)
		}
	})
}

// overruledBy is the policy of the management cluster that says who may call a Destination, or a service with the same pods: an
// AccessPolicy of a registered cluster opens them to nobody else. It may deny. Nil if there is none.
func overruledBy(r *reconciler, b *accessBinding, i int) *snapshot.Ref {
	if b.ref.Cluster == "" || b.rule.Denies {
		return nil
	}
	services := []int{i}
	for _, group := range r.env.shared.of[i] {
		services = append(services, r.env.shared.groups[group]...)
	}
	for _, at := range services {
		for _, other := range r.attached[at].access {
			if other.ref.Cluster == "" && !other.rule.Denies {
				return &other.ref
			}
		}
	}
	return nil
}

// overruled is the issue of a policy that overruledBy found another for.
func overruled(by *snapshot.Ref) snapshot.Issue {
	return snapshot.Errorf(snapshot.FieldConflict, "ask an administrator of the management cluster to allow the callers there",
		"AccessPolicy %s of the management cluster says who may call the service", by.Identity()).At("sourceSelector").CausedBy(*by)
}

// inForceOf are those of some ServiceDependencies on the same workloads that are in force: the ones of the management cluster, if there are
// any. What users of a registered cluster add to these would lift a limit.
func inForceOf(bindings []*dependencyBinding) []*dependencyBinding {
	hub := slices.DeleteFunc(slices.Clone(bindings), func(b *dependencyBinding) bool { return b.ref.Cluster != "" })
	if len(hub) > 0 {
		return hub
	}
	return bindings
}

// overruledDependency is the issue of a ServiceDependency on workloads for which the management cluster has another one.
func overruledDependency(by snapshot.Ref) snapshot.Issue {
	return snapshot.Errorf(snapshot.FieldConflict, "ask an administrator of the management cluster to name the destinations there",
		"ServiceDependency %s of the management cluster says what the workload calls", by.Identity()).At("destinationSelectors").CausedBy(by)
}
