package engine_test

import (
	"fmt"
	"slices"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	security "istio.io/api/security/v1beta1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/meshctl/meshctl/engine"
	networkingv1 "github.com/meshctl/meshctl/engine/api/networking/v1"
	"github.com/meshctl/meshctl/engine/inventory"
	"github.com/meshctl/meshctl/engine/offline"
	"github.com/meshctl/meshctl/engine/snapshot"
)

// TestDenyingOnlyCloses: a policy that denies lets nobody in who was kept out, keeps out what it denies, whatever else allows that, and
// leaves all other calls as they are; so that without it nobody is kept out who was let in.
func TestDenyingOnlyCloses(t *testing.T) {
	t.Parallel()
	var denied, kept, open int
	enough := func() bool { return min(denied, kept, open) > 100 }
	for seed := range seeds(t, 2*rounds, enough) {
		w := newRandomWorld(seed)
		for range 4 {
			[]func(){w.sharePods, w.addAccess, w.editAccess, w.changeVirtualMesh}[w.r.Intn(4)]()
		}
		without := engine.Translate(w.input())
		p := &networkingv1.AccessPolicy{ObjectMeta: metav1.ObjectMeta{Name: "denies", Namespace: snapshot.DefaultNamespace, Generation: 1}}
		w.fillAccess(&p.Spec)
		p.Spec.Action, p.Spec.DestinationSelector = networkingv1.AccessDeny, w.destinations()
		w.access = append(slices.Clone(w.access), p)
		with := engine.Translate(w.input())
		before, after := authorizationPolicies(without.Output), authorizationPolicies(with.Output)
		for _, workload := range with.Plan.Workloads {
			k := workload.Spec.Kubernetes
			at := inventory.NamespaceOf(k)
			for range 10 {
				c := w.call()
				about := fmt.Sprintf("seed %d: %+v to %s, with %+v", seed, c, workload.Name, p.Spec)
				was, is := admits(without.Plan, before[at], k.PodLabels, at, c), admits(with.Plan, after[at], k.PodLabels, at, c)
				require.False(t, is && !was, about)
				exactly, somePort := deniedBy(with.Plan, at, k.PodLabels, c)
				switch {
				case exactly:
					require.False(t, is, about)
					denied++
				case !somePort:
					require.Equal(t, was, is, about)
					kept++
				}
				if is {
					open++
				}
			}
		}
	}
	t.Logf("%d calls denied, %d as before, %d let in", denied, kept, open)
	assert.Positive(t, min(denied, kept, open))
}

// admits evaluates the policies at a pod as Istio does: what denies first, and what allows only if there is any.
func admits(plan *snapshot.Plan, policies []*security.AuthorizationPolicy, labels map[string]string, at inventory.Namespace, c call) bool {
	if anyMatches(policies, security.AuthorizationPolicy_DENY, labels, c) {
		return false
	}
	closed := slices.ContainsFunc(policies, func(p *security.AuthorizationPolicy) bool {
		return p.Action == security.AuthorizationPolicy_ALLOW && inventory.MatchLabels(p.Selector.MatchLabels, labels)
	}) || slices.ContainsFunc(plan.Meshes, func(m *snapshot.MeshPlan) bool { return m.Cluster == at.Cluster && m.DenyByDefault != nil })
	return !closed || anyMatches(policies, security.AuthorizationPolicy_ALLOW, labels, c)
}

// deniedBy reports whether the policy of the test denies a call to a pod as it is written, and whether it does so on some port.
func deniedBy(plan *snapshot.Plan, at inventory.Namespace, labels map[string]string, c call) (exactly, somePort bool) {
	for d := range plan.Destinations.All() {
		k := d.Destination.Spec.KubeService
		if d.Denials == nil || k.Ref.ClusterName != at.Cluster || k.Ref.Namespace != at.Name || !inventory.MatchLabels(k.WorkloadSelectorLabels, labels) {
			continue
		}
		for _, rule := range d.Denials.Policies {
			if rule.Origin.Ref.Name != "denies" {
				continue
			}
			anyPort := *rule
			anyPort.Ports = nil
			exactly, somePort = exactly || allows(rule, d, c), somePort || allows(&anyPort, d, c)
		}
	}
	return exactly, somePort
}

// TestTheLastGoodDenialStays: an edit of a policy that asks for what a mesh cannot deny leaves in force what was accepted before, also
// where only the status that says so is new to the translator.
func TestTheLastGoodDenialStays(t *testing.T) {
	t.Parallel()
	edited, _, err := offline.Load(offline.Dir("../testdata/translate/deny-limited-trust/in"))
	require.NoError(t, err)
	require.Len(t, edited.Management.Destinations, 1)
	management, forgotten := *edited.Management, *edited
	management.Destinations = nil
	forgotten.Management = &management

	memo := engine.New(engine.Options{})
	for _, step := range []struct {
		in     *snapshot.Input
		denies int
	}{{&forgotten, 0}, {edited, 1}, {&forgotten, 0}, {edited, 1}} {
		now := memo.Translate(step.in)
		require.Equal(t, text(t, engine.Translate(step.in).Output), text(t, now.Output))
		for d := range now.Plan.Destinations.All() {
			if d.Ref.Name != "cart-shop-cluster-1" {
				continue
			}
			require.Equal(t, step.denies > 0, d.Denials != nil)
			if d.Denials != nil {
				assert.True(t, d.Denials.Policies[0].LastGood)
				assert.Empty(t, d.Denials.Policies[0].Paths)
				assert.Len(t, d.Denials.Relayed, 1)
			}
		}
	}
}
