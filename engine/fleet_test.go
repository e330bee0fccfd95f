//go:build unix

package engine_test

import (
	"runtime"
	"slices"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"

	"github.com/meshctl/meshctl/engine"
	networkingv1 "github.com/meshctl/meshctl/engine/api/networking/v1"
	"github.com/meshctl/meshctl/engine/enginetest"
	"github.com/meshctl/meshctl/engine/snapshot"
)

// fleets are many clusters in one VirtualMesh, of which each has about a thousand
// ServiceEntries for others, and the number of them. The last needs 14 GB.
var fleets = []struct {
	enginetest.Size
	remoteEntries int
}{
	{enginetest.Size{Services: 100, Clusters: 200, FederateEvery: 20}, 199_000},
	{enginetest.Size{Services: 300, Clusters: 200, FederateEvery: 60}, 199_000},
	{enginetest.Size{Services: 100, Clusters: 1_000, FederateEvery: 100}, 999_000},
	{enginetest.Size{Services: 300, Clusters: 1_000, FederateEvery: 300}, 999_000},
	{enginetest.Size{Services: 1_000, Clusters: 1_000, FederateEvery: 1_000}, 999_000},
}

// BenchmarkFleet is the translation of fleets from nothing. It reports the live heap with
// and without what was translated.
func BenchmarkFleet(b *testing.B) {
	for _, size := range fleets {
		b.Run(title(size.Size), func(b *testing.B) {
			in := enginetest.World(size.Size)
			before := liveHeap()
			b.ReportAllocs()
			cpu := cpuTime(b)
			var state *snapshot.State
			var translator *engine.Translator
			for b.Loop() {
				translator = engine.New(engine.Options{})
				state = translator.Translate(in)
			}
			b.ReportMetric((cpuTime(b)-cpu).Seconds()/float64(b.N), "cpu-s/op")
			b.ReportMetric(before/1e6, "MB-input")
			b.ReportMetric(liveHeap()/1e6, "MB-after")
			require.Equal(b, size.remoteEntries, remoteEntries(state.Output))
			runtime.KeepAlive(translator)
		})
	}
}

// liveHeap is how many bytes are in use after a collection.
func liveHeap() float64 {
	runtime.GC()
	var stats runtime.MemStats
	runtime.ReadMemStats(&stats)
	return float64(stats.HeapAlloc)
}

// BenchmarkFleetEdit is one edit in a fleet: of a TrafficPolicy on a service that all clusters
// see, so that each of them gets another VirtualService; of one on a service that only its own
// cluster sees; and a pod that became another.
func BenchmarkFleetEdit(b *testing.B) {
	for _, size := range fleets[:3] {
		b.Run(title(size.Size), func(b *testing.B) {
			in := enginetest.World(size.Size)
			in = echo(in, engine.Translate(in).Output)
			b.Run("policy", func(b *testing.B) { fleetEdits(b, in, edited(in, 1), edited(in, 2)) })
			b.Run("local", func(b *testing.B) { fleetEdits(b, in, editedLocal(in, 1), editedLocal(in, 2)) })
			b.Run("pod", func(b *testing.B) {
				fleetEdits(b, in, podReplaced(b, in, "10.9.9.1"), podReplaced(b, in, "10.9.9.2"))
			})
		})
	}
}

// fleetEdits goes from one edit to the other and back. Beside the time on the clock it reports
// that of the CPU, which other processes disturb less; it includes what the garbage collector
// does for all that lives.
func fleetEdits(b *testing.B, in *snapshot.Input, edits ...*snapshot.Input) {
	b.Helper()
	translator := engine.New(engine.Options{})
	translator.Translate(in)
	translator.Translate(edits[1])
	b.ReportAllocs()
	i, before := 0, cpuTime(b)
	for b.Loop() {
		i++
		translator.Translate(edits[i%2])
	}
	b.ReportMetric((cpuTime(b)-before).Seconds()*1000/float64(b.N), "cpu-ms/op")
}

// cpuTime is what this process has used.
func cpuTime(b *testing.B) time.Duration {
	b.Helper()
	var usage syscall.Rusage
	require.NoError(b, syscall.Getrusage(syscall.RUSAGE_SELF, &usage))
	return time.Duration(usage.Utime.Nano() + usage.Stime.Nano())
}

// editedLocal is the input with one more TrafficPolicy, on a service that is not federated.
func editedLocal(in *snapshot.Input, attempts int32) *snapshot.Input {
	p := enginetest.TrafficPolicy(99_999, 1, 0, time.Second)
	p.Spec.Policy.Retries = &networkingv1.RetryPolicy{Attempts: attempts}
	return withTraffic(in, append(slices.Clone(in.Management.TrafficPolicies), p))
}

// podReplaced is the input with another address of the last pod of the cluster in the middle.
func podReplaced(b *testing.B, in *snapshot.Input, address string) *snapshot.Input {
	b.Helper()
	c := in.Clusters[len(in.Clusters)/2]
	pod := c.Pods[len(c.Pods)-1].DeepCopy()
	slice := c.EndpointSlices[len(c.EndpointSlices)-1].DeepCopy()
	require.Equal(b, pod.Name, slice.Endpoints[0].TargetRef.Name)
	pod.Status = corev1.PodStatus{PodIP: address, Phase: corev1.PodRunning}
	slice.Endpoints[0].Addresses = []string{address}
	out, err := in.With(c.Name, pod)
	require.NoError(b, err)
	out, err = out.With(c.Name, slice)
	require.NoError(b, err)
	return out
}
