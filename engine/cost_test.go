package engine_test

import (
	"runtime"
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

// TestEditTouchesItsCluster: the memory that the edit of a policy for one cluster takes does not grow with what there is in all others. A list
// of all workloads would be one allocation.
//
//nolint:paralleltest // allocations of other tests would count
func TestEditTouchesItsCluster(t *testing.T) {
	allocated := func(clusters int) uint64 {
		in := enginetest.World(enginetest.Size{Services: 50, Clusters: clusters, FederateEvery: 50})
		in = echo(in, engine.Translate(in).Output)
		edits := []*snapshot.Input{editedLocal(in, 1), editedLocal(in, 2)}
		translator := engine.New(engine.Options{})
		translator.Translate(in)
		translator.Translate(edits[1])
		const times = 20
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		for i := range times {
			translator.Translate(edits[i%2])
		}
		runtime.ReadMemStats(&after)
		return (after.TotalAlloc - before.TotalAlloc) / times
	}
	few, many := allocated(10), allocated(40)
	t.Logf("%d bytes with 10 clusters, %d with 40", few, many)
	// Lists of clusters are copied, but nothing for each of their 100 services and workloads.
	assert.Less(t, many, few+30*2000)
}
