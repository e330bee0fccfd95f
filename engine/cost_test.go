package engine_test

import (
	"testing"

	"github.com/stretchr/testify/assert"

	"github.com/meshctl/meshctl/engine"
	"github.com/meshctl/meshctl/engine/enginetest"
	"github.com/meshctl/meshctl/engine/snapshot"
)

// TestEditCostIsFlat: what an edit of one policy takes does not grow with the
// services that it is not about. Allocations are counted, because they are the
// same on every machine; `make bench` has the times.
//
//nolint:paralleltest // allocations of other tests would count
func TestEditCostIsFlat(t *testing.T) {
	cost := func(size enginetest.Size) float64 {
		in := enginetest.World(size)
		translator := engine.New(engine.Options{})
		translator.Translate(in)
		edits := []*snapshot.Input{edited(in, 1), edited(in, 2)}
		i := 0
		return testing.AllocsPerRun(20, func() {
			i++
			translator.Translate(edits[i%2])
		})
	}
	small := cost(enginetest.Size{Services: 50, Clusters: 2, FederateEvery: 1, Policies: 50})
	large := cost(enginetest.Size{Services: 5_000, Clusters: 2, FederateEvery: 1, Policies: 50})
	assert.Positive(t, small)
	assert.Less(t, large, 1.5*small, "allocations of an edit among 10,000 services, and among 100")
}
