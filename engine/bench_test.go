package engine_test

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/meshctl/meshctl/engine"
	networkingv1 "github.com/meshctl/meshctl/engine/api/networking/v1"
	"github.com/meshctl/meshctl/engine/enginetest"
	"github.com/meshctl/meshctl/engine/snapshot"
)

// sizes of the benchmarks, and how many ServiceEntries for other clusters each must give.
var sizes = []struct {
	enginetest.Size
	remoteEntries int
}{
	{enginetest.Size{Services: 100, Clusters: 2, FederateEvery: 1}, 200},
	{enginetest.Size{Services: 1_000, Clusters: 2, FederateEvery: 1}, 2_000},
	{enginetest.Size{Services: 5_000, Clusters: 2, FederateEvery: 1}, 10_000},
	{enginetest.Size{Services: 1_000, Clusters: 10, FederateEvery: 1}, 90_000},
	{enginetest.Size{Services: 100, Clusters: 2, FederateEvery: 1, Policies: 1_000}, 200},
	{enginetest.Size{Services: 1_000, Clusters: 10, FederateEvery: 1, Policies: 1_000}, 90_000},
	{enginetest.Size{Services: 1_000, Clusters: 50, FederateEvery: 10}, 245_000},
}

func title(s enginetest.Size) string {
	return fmt.Sprintf("services=%dx%d/policies=%d", s.Services, s.Clusters, 2*s.Policies)
}

// remoteEntries counts the ServiceEntries away from the clusters of their services.
func remoteEntries(out *snapshot.Output) int {
	n := 0
	for p := range out.Parts.All() {
		entries := 0
		for _, o := range p.Objects {
			if o.Ref.Kind == snapshot.ServiceEntry {
				entries++
			}
		}
		n += max(0, entries-1) // one of them is at home
	}
	return n
}

func BenchmarkTranslate(b *testing.B) {
	for _, size := range sizes {
		b.Run(title(size.Size), func(b *testing.B) {
			in := enginetest.World(size.Size)
			b.ReportAllocs()
			var state *snapshot.State
			for b.Loop() {
				state = engine.Translate(in)
			}
			require.Equal(b, size.remoteEntries, remoteEntries(state.Output))
		})
	}
}

// BenchmarkEdit is one edit of one TrafficPolicy in a world that is otherwise
// the same, from input to output.
func BenchmarkEdit(b *testing.B) {
	for _, size := range sizes {
		b.Run(title(size.Size), func(b *testing.B) {
			in := enginetest.World(size.Size)
			memo := engine.NewMemo()
			memo.Translate(in)
			edits := []*snapshot.Input{edited(in, 1), edited(in, 2)}
			state := memo.Translate(edits[1])
			b.ReportAllocs()
			i := 0
			for b.Loop() {
				i++
				state = memo.Translate(edits[i%2])
			}
			require.Empty(b, state.Output.Issues)
		})
	}
}

// edited is the input with one more TrafficPolicy on the first service in it,
// which agrees with what others ask for there, and sets the retries.
func edited(in *snapshot.Input, attempts int32) *snapshot.Input {
	out, management := *in, *in.Management
	out.Management = &management
	p := enginetest.TrafficPolicy(99_999, 0, 0, time.Second)
	p.Spec.Policy.Retries = &networkingv1.RetryPolicy{Attempts: attempts}
	management.TrafficPolicies = append(slices.Clone(management.TrafficPolicies), p)
	return &out
}
