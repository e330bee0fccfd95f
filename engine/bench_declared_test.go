package engine_test

import (
	"fmt"
	"runtime"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/meshctl/meshctl/engine"
	enterprisev1beta1 "github.com/meshctl/meshctl/engine/api/enterprise/v1beta1"
	networkingv1 "github.com/meshctl/meshctl/engine/api/networking/v1"
	"github.com/meshctl/meshctl/engine/enginetest"
	"github.com/meshctl/meshctl/engine/explain"
	"github.com/meshctl/meshctl/engine/snapshot"
)

// manyMeshes is a world in which each cluster has a number of ServiceDependencies, each on one service of another cluster.
func manyMeshes(clusters, services, dependencies int) *snapshot.Input {
	in := enginetest.World(enginetest.Size{Services: services, Clusters: clusters, FederateEvery: 1})
	for c := range clusters {
		for n := range dependencies {
			in.Management.ServiceDependencies = append(in.Management.ServiceDependencies,
				dependencyOn(fmt.Sprintf("depends-%04d-%d", c, n), c, serviceRef((7*c+n)%services, (c+1+n)%clusters)))
		}
	}
	return in
}

// BenchmarkDeclared translates 200 clusters with 100 services and 5 dependencies each, with both modes of federation, and tells
// what each proxy holds of other meshes; and edits one ServiceDependency, which with mode DECLARED decides anew what all meshes
// import. MB is what stays in memory of the translation beside its input.
func BenchmarkDeclared(b *testing.B) {
	const clusters, services, dependencies = 200, 100, 5
	world := manyMeshes(clusters, services, dependencies)
	for mode, want := range map[networkingv1.FederationMode]int{
		networkingv1.FederationModeAll: (clusters - 1) * services, networkingv1.FederationModeDeclared: dependencies,
	} {
		in := withMode(world, mode)
		b.Run("mode="+string(mode), func(b *testing.B) {
			before := heap()
			b.ReportAllocs()
			var state *snapshot.State
			for b.Loop() {
				state = engine.Translate(in)
			}
			b.ReportMetric(float64(heap()-before)/1e6, "MB")
			sizes, err := explain.FederationSizes(explain.New(state), snapshot.RefOf(snapshot.VirtualMesh, in.Management.VirtualMeshes[0]), nil)
			require.NoError(b, err)
			require.Equal(b, want, sizes[0].ServiceEntries)
			b.ReportMetric(float64(sizes[0].ServiceEntries), "entries/proxy")
			b.ReportMetric(float64(sizes[0].EstimatedBytes), "B/proxy")
			b.ReportMetric(float64(sizes[0].Written), "entries")
		})
		b.Run("edit/mode="+string(mode), func(b *testing.B) {
			translator := engine.New(engine.Options{})
			translator.Translate(in)
			edits := []*snapshot.Input{dependingOn(in, 50), dependingOn(in, 51)}
			for i := 0; b.Loop(); i++ {
				translator.Translate(edits[i%2])
			}
		})
	}
}

// dependingOn is the input with another first ServiceDependency.
func dependingOn(in *snapshot.Input, service int) *snapshot.Input {
	out, management := *in, *in.Management
	out.Management = &management
	first := in.Management.ServiceDependencies[0]
	edited := dependencyOn(first.Name, 0, serviceRef(service, 1))
	edited.Generation = int64(service)
	management.ServiceDependencies = append([]*enterprisev1beta1.ServiceDependency{edited}, in.Management.ServiceDependencies[1:]...)
	return &out
}

// heap is what is in use after a collection, in bytes.
func heap() int64 {
	runtime.GC()
	var stats runtime.MemStats
	runtime.ReadMemStats(&stats)
	return int64(stats.HeapAlloc)
}
