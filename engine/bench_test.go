package engine_test

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"

	"github.com/meshctl/meshctl/engine"
	commonv1 "github.com/meshctl/meshctl/engine/api/common/v1"
	networkingv1 "github.com/meshctl/meshctl/engine/api/networking/v1"
	settingsv1 "github.com/meshctl/meshctl/engine/api/settings/v1"
	"github.com/meshctl/meshctl/engine/enginetest"
	"github.com/meshctl/meshctl/engine/offline"
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
			benchmarkEdits(b, in, edited(in, 1), edited(in, 2))
		})
	}
}

// BenchmarkStatus is a status of one Destination that was written, where all is stored.
func BenchmarkStatus(b *testing.B) {
	for _, size := range sizes[:4] {
		b.Run(title(size.Size), func(b *testing.B) {
			in := enginetest.World(size.Size)
			in = echo(in, engine.Translate(in).Output)
			benchmarkEdits(b, in, statusWritten(in, 1), statusWritten(in, 2))
		})
	}
}

// statusWritten is the input with another status of its first Destination.
func statusWritten(in *snapshot.Input, generation int64) *snapshot.Input {
	out, management := *in, *in.Management
	out.Management = &management
	management.Destinations = slices.Clone(management.Destinations)
	d := *management.Destinations[0]
	d.Status.ObservedGeneration = generation
	management.Destinations[0] = &d
	return &out
}

// benchmarkEdits goes from one edit of a world to the other and back.
func benchmarkEdits(b *testing.B, in *snapshot.Input, edits ...*snapshot.Input) {
	b.Helper()
	translator := engine.New(engine.Options{})
	translator.Translate(in)
	state := translator.Translate(edits[1])
	b.ReportAllocs()
	i := 0
	for b.Loop() {
		i++
		state = translator.Translate(edits[i%2])
	}
	require.Empty(b, state.Output.Issues)
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

// BenchmarkFlooded is an edit of a TrafficPolicy, and a Service that comes and goes, in a
// world where somebody made 50,000 Services over one pod.
func BenchmarkFlooded(b *testing.B) {
	for name, most := range map[string]uint32{"limits=default": 0, "limits=none": 1_000_000} {
		world := enginetest.World(enginetest.Size{Services: 1_000, Clusters: 2, FederateEvery: 1})
		world.Management.Settings = []*settingsv1.Settings{{Spec: settingsv1.SettingsSpec{
			Discovery:  &settingsv1.DiscoverySettings{Limits: &settingsv1.DiscoveryLimits{ServicesPerNamespace: most}},
			Federation: &settingsv1.FederationSettings{Limits: &settingsv1.FederationLimits{ServicesPerNamespace: most, ServicesPerCluster: most, EndpointsPerNamespace: most}},
		}}}
		in := flooded(world, 50_000)
		in = echo(in, engine.Translate(in).Output)
		for what, edits := range map[string][]*snapshot.Input{
			"policy": {edited(in, 1), edited(in, 2)}, "service": {in, flooded(in, 1)},
		} {
			b.Run(name+"/"+what, func(b *testing.B) {
				translator := engine.New(engine.Options{})
				translator.Translate(in)
				b.ReportAllocs()
				for i := 0; b.Loop(); i++ {
					translator.Translate(edits[i%2])
				}
			})
		}
	}
}

// BenchmarkEditAccount is one edit of an AccessPolicy on services that stand for
// the same pods, in a mesh that knows callers and services by account only.
func BenchmarkEditAccount(b *testing.B) {
	for _, services := range []int{100, 400, 1_600} {
		b.Run(fmt.Sprintf("services=%d", services), func(b *testing.B) {
			in := sharedAccount(b, services)
			benchmarkEdits(b, in, allowing(in, "/a"), allowing(in, "/b"))
		})
	}
}

// sharedAccount is the world of the golden case with more services in front of
// the pods behind the service `paths`, and no policies.
func sharedAccount(b *testing.B, services int) *snapshot.Input {
	b.Helper()
	in, _, err := offline.Load(offline.Dir("../testdata/translate/osm-access/in"))
	require.NoError(b, err)
	in.Management.AccessPolicies = nil
	cluster := in.Clusters[0]
	at := slices.IndexFunc(cluster.Services, func(s *corev1.Service) bool { return s.Name == "paths" })
	for n := range services {
		more := cluster.Services[at].DeepCopy()
		more.Name, more.Labels = fmt.Sprintf("many-%05d", n), map[string]string{"many": "yes"}
		cluster.Services = append(cluster.Services, more)
	}
	slices.SortFunc(cluster.Services, func(a, b *corev1.Service) int {
		return cmp.Or(strings.Compare(a.Namespace, b.Namespace), strings.Compare(a.Name, b.Name))
	})
	return in
}

// allowing is the input with one AccessPolicy on all services in front of the pods.
func allowing(in *snapshot.Input, path string) *snapshot.Input {
	out, management := *in, *in.Management
	out.Management = &management
	p := &networkingv1.AccessPolicy{}
	p.Name, p.Namespace, p.Generation = "many", snapshot.DefaultNamespace, 1
	p.Spec.DestinationSelector = []commonv1.DestinationSelector{{KubeServiceMatcher: &commonv1.KubeServiceMatcher{Labels: map[string]string{"many": "yes"}}}}
	p.Spec.SourceSelector = []commonv1.IdentitySelector{{KubeServiceAccountRefs: &commonv1.KubeServiceAccountRefs{
		ServiceAccounts: []commonv1.ClusterObjectRef{{Name: "web", Namespace: "front", ClusterName: in.Clusters[0].Name}},
	}}}
	p.Spec.AllowedPaths = []string{path}
	management.AccessPolicies = []*networkingv1.AccessPolicy{p}
	return &out
}

// BenchmarkEditSharedPods is one edit of an AccessPolicy on many services over the pods of
// one that is closed to most callers.
func BenchmarkEditSharedPods(b *testing.B) {
	for _, services := range []int{1, 100, 1_000} {
		b.Run(fmt.Sprintf("services=%d", services), func(b *testing.B) {
			in := overOnePod(services, func(int) string { return "many" })
			translator := engine.New(engine.Options{})
			edits := []*snapshot.Input{laxOn(in, 1, "/a"), laxOn(in, 1, "/b")}
			b.ReportAllocs()
			for i := 0; b.Loop(); i++ {
				translator.Translate(edits[i%2])
			}
		})
	}
}
