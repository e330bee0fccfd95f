package apply_test

import (
	"net/http"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	networking "istio.io/api/networking/v1alpha3"

	"github.com/meshctl/meshctl/engine/snapshot"
)

// TestLocalNamesAreOfEachCluster: clusters call their own services by the same names, so a
// route in one cluster neither keeps a subset in another nor waits for it.
func TestLocalNamesAreOfEachCluster(t *testing.T) {
	t.Parallel()
	inBubble(t, func(b *bubble) {
		const two, host = "cluster-2", "a.ns.svc.cluster.local"
		other := newFakeServer()
		b.sink.Set(two, other.config())
		object := func(kind snapshot.Kind, cluster string, spec any) *snapshot.Object {
			return related(&snapshot.Object{Ref: snapshot.Ref{Kind: kind, Cluster: cluster, Namespace: "ns", Name: "a"}, Content: &snapshot.Content{Spec: spec}})
		}
		route := func(subset string) *snapshot.Object {
			return object(snapshot.VirtualService, one, &networking.VirtualService{Http: []*networking.HTTPRoute{{
				Route: []*networking.HTTPRouteDestination{{Destination: &networking.Destination{Host: host, Subset: subset}}},
			}}})
		}
		rule := func(cluster string, subsets ...string) *snapshot.Object {
			spec := &networking.DestinationRule{Host: host}
			for _, name := range subsets {
				spec.Subsets = append(spec.Subsets, &networking.Subset{Name: name})
			}
			return object(snapshot.DestinationRule, cluster, spec)
		}
		apply := func(objects ...*snapshot.Object) {
			b.Helper()
			b.sink.Apply(output([]string{one, two}, objects...))
			time.Sleep(3 * time.Second)
		}
		apply(route("v1"), rule(one, "v1", "v2"), rule(two, "v1", "v2"))
		apply(route("v1"), rule(one, "v1", "v2"), rule(two, "v2"))
		assert.Len(b, other.spec(b.T, "destinationrules")["subsets"], 1, "subsets in cluster-2, where no route uses v1")

		other.answers(always(http.StatusUnprocessableEntity, "spec is invalid"))
		apply(route("v3"), rule(one, "v1", "v2", "v3"), rule(two, "v2", "v3"))
		to := b.spec(b.T, "virtualservices")["http"].([]any)[0].(map[string]any)["route"].([]any)[0]
		assert.Equal(b, "v3", to.(map[string]any)["destination"].(map[string]any)["subset"], "nothing in cluster-2 is waited for")
	})
}

// spec is that of the object a of one of Istio's networking kinds.
func (s *fakeServer) spec(t *testing.T, resource string) map[string]any {
	t.Helper()
	s.mu.Lock()
	defer s.mu.Unlock()
	o := s.objects["/apis/networking.istio.io/v1/namespaces/ns/"+resource+"/a"]
	require.NotNil(t, o, resource)
	return o["spec"].(map[string]any)
}
