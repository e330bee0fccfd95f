package engine_test

import (
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/meshctl/meshctl/engine"
	"github.com/meshctl/meshctl/engine/explain"
	"github.com/meshctl/meshctl/engine/snapshot"
)

// TestCallersAgreeWithWhy: who gets an answer is among those whom the service lets in, and of those, each that cannot get one has a reason
// that is not about who it is.
func TestCallersAgreeWithWhy(t *testing.T) {
	t.Parallel()
	allowed, refused := 0, 0
	for seed := range seeds(t, rounds, func() bool { return min(allowed, refused) > 300 }) {
		w := newRandomWorld(seed)
		for range 12 {
			w.change()
		}
		index := explain.New(engine.Translate(w.input()))
		for _, to := range index.Refs(snapshot.Destination) {
			access := index.Describe(to).(*explain.Destination).Access
			if access.Default == explain.Allow && len(access.ByHand)+len(access.Denied)+len(access.SharedWith)+len(access.DeniedBeside) == 0 {
				continue // it lists no callers
			}
			for _, from := range index.Refs(snapshot.Workload) {
				why := index.Why(from, to, explain.Request{})
				if why == nil {
					continue
				}
				_, admitted := slices.BinarySearchFunc(access.Callers, from, snapshot.Ref.Compare)
				switch {
				case why.Verdict == explain.Allowed && ownPods(why):
					require.True(t, admitted, "seed %d: %s to %s: %s", seed, from, to, why.Reason)
					allowed++
				case !admitted:
					refused++
				}
			}
		}
	}
	t.Logf("%d calls allowed, %d not let in", allowed, refused)
}

// ownPods reports whether requests end at the pods of the service that is called, and are not sent elsewhere.
func ownPods(w *explain.Why) bool {
	return !slices.ContainsFunc(w.Outcomes, func(o explain.Outcome) bool { return o.Destination != w.To })
}
