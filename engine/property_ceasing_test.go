package engine_test

import (
	"fmt"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/meshctl/meshctl/engine"
	networkingv1 "github.com/meshctl/meshctl/engine/api/networking/v1"
	"github.com/meshctl/meshctl/engine/snapshot"
)

// storePolicies writes the statuses of policies back, as a sink would.
func (w *randomWorld) storePolicies(state *snapshot.State) {
	traffic := map[string]*networkingv1.TrafficPolicyStatus{}
	access := map[string]*networkingv1.AccessPolicyStatus{}
	for s := range state.Output.Statuses.All() {
		switch v := s.Value.(type) {
		case *networkingv1.TrafficPolicyStatus:
			traffic[s.Ref.Name] = v
		case *networkingv1.AccessPolicyStatus:
			access[s.Ref.Name] = v
		}
	}
	w.traffic, w.access = slices.Clone(w.traffic), slices.Clone(w.access)
	for i, p := range w.traffic {
		w.traffic[i] = p.DeepCopy()
		stored(traffic[p.Name], &w.traffic[i].Status)
	}
	for i, p := range w.access {
		w.access[i] = p.DeepCopy()
		w.access[i].Status = *access[p.Name].DeepCopy()
	}
}

func (w *randomWorld) editAccess() {
	if len(w.access) == 0 {
		return
	}
	w.access = slices.Clone(w.access)
	at := w.r.Intn(len(w.access))
	p := w.access[at].DeepCopy()
	p.Generation++
	if w.r.Intn(2) == 0 {
		w.fillAccess(&p.Spec)
	} else {
		p.Spec.DestinationSelector = w.destinations()
	}
	w.access[at] = p
}

// readLate has all policies in force once, though nothing else was seen of it.
func (w *randomWorld) readLate() {
	w.traffic, w.access = slices.Clone(w.traffic), slices.Clone(w.access)
	for i, p := range w.traffic {
		w.traffic[i] = p.DeepCopy()
		w.traffic[i].Status.LastEnforcedGeneration = 1
	}
	for i, p := range w.access {
		w.access[i] = p.DeepCopy()
		w.access[i].Status.LastEnforcedGeneration = 1
	}
}

// TestStoredStatusesAreTheNextOnes: what was written is asked for again, byte
// for byte, so that nothing is written twice.
func TestStoredStatusesAreTheNextOnes(t *testing.T) {
	t.Parallel()
	ceased := 0
	for seed := range seeds(t, rounds) {
		w := newRandomWorld(seed)
		for range 12 {
			w.change()
			w.storePolicies(engine.Translate(w.input()))
		}
		first := engine.Translate(w.input())
		w.storePolicies(first)
		second := engine.Translate(w.input())
		require.Equal(t, text(t, first.Output), text(t, second.Output), "seed %d", seed)
		for _, p := range second.Plan.Policies {
			in := slices.ContainsFunc(p.Verdicts, func(v snapshot.Verdict) bool { return v.Accepted })
			said := slices.ContainsFunc(p.Issues, func(i snapshot.Issue) bool { return i.Code == snapshot.NoLongerEnforced })
			require.False(t, said && in, "seed %d: %s is in force", seed, p.Ref)
			if in {
				require.Equal(t, p.Policy.GetGeneration(), p.LastEnforced, fmt.Sprint(p.Ref))
			}
			if said {
				ceased++
			}
		}
	}
	require.Positive(t, ceased)
}
