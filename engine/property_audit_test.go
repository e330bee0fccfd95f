package engine_test

import (
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/meshctl/meshctl/engine"
	networkingv1 "github.com/meshctl/meshctl/engine/api/networking/v1"
	"github.com/meshctl/meshctl/engine/explain"
	"github.com/meshctl/meshctl/engine/snapshot"
)

// TestAuditingChangesNothing: what is audited has no effect on what is written but for what proxies only try, on the statuses of others and
// on answers; what would be is what follows from the same objects with all of them enforced.
func TestAuditingChangesNothing(t *testing.T) {
	t.Parallel()
	var audited, refused, narrowed, tried int
	for seed := range seeds(t, 2*rounds, func() bool { return min(audited, refused, narrowed, tried) > 20 }) {
		w := newRandomWorld(seed)
		for range 8 {
			[]func(){w.sharePods, w.addAccess, w.addAccess, w.editAccess, w.changeVirtualMesh}[w.r.Intn(5)]()
		}
		all := w.input()
		without, with := auditingSome(w, all)
		base, got, would := engine.Translate(without), engine.Translate(with), engine.Translate(all)
		if got.Audited == nil {
			require.Equal(t, with, all, "seed %d", seed)
			continue
		}
		about := []any{"seed %d", seed}
		inForce, trials := withoutTrials(t, got.Output)
		same(t, base.Output.Parts.Slice(), inForce, about...)
		tried += len(trials)
		written := map[snapshot.Ref]bool{}
		for o := range would.Output.Objects {
			written[o.Ref] = true
		}
		for _, o := range trials {
			of := o.Ref
			of.Name = strings.TrimSuffix(of.Name, ".audit")
			require.True(t, written[of], "seed %d: %s is tried, and would not be written", seed, o.Ref)
		}
		require.Len(t, got.Plan.Policies, len(would.Plan.Policies), about...)
		before, after, audit := explain.New(got), explain.New(would), explain.New(got.Audited)
		for _, ref := range after.Refs(snapshot.Destination) {
			require.Equal(t, after.Describe(ref).(*explain.Destination).Access, audit.Describe(ref).(*explain.Destination).Access, about...)
		}
		for _, p := range got.Plan.Policies {
			if !p.Audited {
				continue
			}
			audited++
			answer := before.Describe(p.Ref).(*explain.Policy)
			refused, narrowed = refused+len(answer.Audit.Refused), narrowed+len(answer.Audit.Narrowed)
			for _, calls := range answer.Audit.Refused {
				why := after.Why(calls.From[0], calls.To[0], explain.Request{})
				require.False(t, why.Verdict == explain.Allowed && ownPods(why), "seed %d: %s %s %s", seed, calls.From[0], calls.To[0], why.Reason)
			}
		}
	}
	t.Logf("%d policies audited, %d rows of calls would be refused, %d services narrowed, %d objects tried", audited, refused, narrowed, tried)
}

// withoutTrials parts what is in force from what proxies only try, which says so.
func withoutTrials(t *testing.T, out *snapshot.Output) (inForce []*snapshot.Part, trials []*snapshot.Object) {
	t.Helper()
	for part := range out.Parts.All() {
		if !strings.HasPrefix(part.Key, "trial/") {
			inForce = append(inForce, part)
			continue
		}
		for _, o := range part.Objects {
			require.Equal(t, snapshot.AuthorizationPolicy, o.Ref.Kind)
			require.Equal(t, "true", o.Content.Annotations["istio.io/dry-run"], o.Ref)
		}
		trials = append(trials, part.Objects...)
	}
	return inForce, trials
}

func same(t *testing.T, want, got any, about ...any) {
	t.Helper()
	require.Equal(t, difference{}, newComparison().compare(reflect.ValueOf(want), reflect.ValueOf(got)), about...)
}

// auditingSome has some of the AccessPolicies of an input audited, and what VirtualMeshes deny, or without them.
func auditingSome(w *randomWorld, in *snapshot.Input) (without, with *snapshot.Input) {
	set := func(change func(m *snapshot.Management)) *snapshot.Input {
		out, m := *in, *in.Management
		change(&m)
		out.Management = &m
		return &out
	}
	some := map[*networkingv1.AccessPolicy]bool{}
	for _, p := range in.Management.AccessPolicies {
		some[p] = w.r.Intn(2) == 0
	}
	global := w.r.Intn(2) == 0
	access := func(m *snapshot.Management, value networkingv1.GlobalAccessPolicy) {
		m.VirtualMeshes = slices.Clone(m.VirtualMeshes)
		for i, vm := range m.VirtualMeshes {
			if global && vm.Spec.GlobalAccessPolicy == networkingv1.GlobalAccessPolicyEnabled {
				m.VirtualMeshes[i] = vm.DeepCopy()
				m.VirtualMeshes[i].Spec.GlobalAccessPolicy = value
			}
		}
	}
	without = set(func(m *snapshot.Management) {
		m.AccessPolicies = slices.DeleteFunc(slices.Clone(m.AccessPolicies), func(p *networkingv1.AccessPolicy) bool { return some[p] })
		access(m, networkingv1.GlobalAccessPolicyMeshDefault)
	})
	with = set(func(m *snapshot.Management) {
		m.AccessPolicies = slices.Clone(m.AccessPolicies)
		for i, p := range m.AccessPolicies {
			if some[p] {
				m.AccessPolicies[i] = p.DeepCopy()
				m.AccessPolicies[i].Spec.Enforcement = networkingv1.EnforcementAudit
			}
		}
		access(m, networkingv1.GlobalAccessPolicyAudit)
	})
	return without, with
}
