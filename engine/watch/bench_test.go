package watch

import (
	"fmt"
	"log/slog"
	"testing"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	endpointv1 "k8s.io/api/discovery/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/meshctl/meshctl/engine/snapshot"
)

// feedOf finds the feed of a type in a cache.
func feedOf[T object](t testing.TB, p *clusterCache[snapshot.Cluster]) *feed[T] {
	t.Helper()
	for _, f := range p.feeds {
		if typed, ok := f.(*feed[T]); ok {
			return typed
		}
	}
	require.FailNow(t, "no such feed")
	return nil
}

// fill puts a service, a slice and two pods for each of n services into a
// cache, as its reflectors would.
func fill(t testing.TB, p *clusterCache[snapshot.Cluster], n int) {
	t.Helper()
	var services, slices, pods []any
	for i := range n {
		name := fmt.Sprintf("service-%04d", i)
		services = append(services, service(name, 80))
		slices = append(slices, &endpointv1.EndpointSlice{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: name}})
		pods = append(pods, pod("default", name+"-a", "node"), pod("default", name+"-b", "node"))
	}
	require.NoError(t, feedOf[*corev1.Service](t, p).Replace(services, ""))
	require.NoError(t, feedOf[*endpointv1.EndpointSlice](t, p).Replace(slices, ""))
	require.NoError(t, feedOf[*corev1.Pod](t, p).Replace(pods, ""))
}

func service(name string, port int32) *corev1.Service {
	return &corev1.Service{
		ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: name},
		Spec:       corev1.ServiceSpec{Ports: []corev1.ServicePort{{Port: port}}, Selector: map[string]string{"app": name}},
	}
}

// filledSource is a Source of n clusters that reads no API server, and the
// caches of its clusters.
func filledSource(t testing.TB, clusters, services int) (*Source, []*clusterCache[snapshot.Cluster]) {
	t.Helper()
	s, err := New(Options{Management: nowhere, Log: slog.New(slog.DiscardHandler)})
	require.NoError(t, err)
	var caches []*clusterCache[snapshot.Cluster]
	for i := range clusters {
		state := newMember(&snapshot.Cluster{Name: fmt.Sprintf("cluster-%02d", i)}, sessionSettings{scheme: s.scheme}, s.options.Log, s.notify)
		p := managedCache(t, snapshot.Plane{Namespace: s.options.Namespace}, "", state.onChange)
		fill(t, p, services)
		owner := &session{cluster: state}
		state.active = &runningSession{session: owner, cancel: func() {}}
		state.publish(owner, p)
		s.clusters[state.next.Name] = state
		caches = append(caches, p)
	}
	s.ready.Store(true)
	return s, caches
}

func TestAChangeLeavesOtherClustersAlone(t *testing.T) {
	t.Parallel()
	s, caches := filledSource(t, 3, 10)
	before := s.Input()
	drainSignal(s)
	require.NoError(t, feedOf[*corev1.Service](t, caches[1]).Update(service("service-0003", 81)))
	require.Len(t, s.Changed(), 1)
	after := s.Input()
	require.Same(t, before.Clusters[0], after.Clusters[0])
	require.Same(t, before.Clusters[2], after.Clusters[2])
	require.NotSame(t, before.Clusters[1], after.Clusters[1])
	require.True(t, snapshot.SameSlice(before.Clusters[1].Pods, after.Clusters[1].Pods))
	require.Same(t, before.Clusters[1].Services[2], after.Clusters[1].Services[2])
	require.EqualValues(t, 80, before.Clusters[1].Services[3].Spec.Ports[0].Port)
	require.EqualValues(t, 81, after.Clusters[1].Services[3].Spec.Ports[0].Port)
	require.Same(t, before.Management, after.Management)
	require.Same(t, after, s.Input())
}

func drainSignal(s *Source) {
	select {
	case <-s.Changed():
	default:
	}
}

// BenchmarkInput is what one changed Service costs before translation, the
// other clusters being left alone.
func BenchmarkInput(b *testing.B) {
	for _, size := range []struct{ clusters, services int }{{2, 1000}, {50, 1000}} {
		b.Run(fmt.Sprintf("%dx%d", size.services, size.clusters), func(b *testing.B) {
			s, caches := filledSource(b, size.clusters, size.services)
			changed := caches[len(caches)/2]
			f := feedOf[*corev1.Service](b, changed)
			b.ReportAllocs()
			port := int32(1)
			before := s.Input()
			for b.Loop() {
				port++
				require.NoError(b, f.Update(service("service-0500", port)))
				after := s.Input()
				require.NotSame(b, before.Clusters[len(caches)/2], after.Clusters[len(caches)/2])
				require.Same(b, before.Clusters[0], after.Clusters[0])
				before = after
			}
		})
	}
}
