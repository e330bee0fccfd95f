package watch

import (
	"slices"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	networking "istio.io/api/networking/v1alpha3"
	istionetworkingv1 "istio.io/client-go/pkg/apis/networking/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/cache"

	"github.com/meshctl/meshctl/engine/api/scheme"
	"github.com/meshctl/meshctl/engine/snapshot"
)

// selector is a feed of whatever type, by the labels that it asks for.
type selector interface {
	selects(t *testing.T, set labels.Set) bool
}

func (f *feed[T]) selects(t *testing.T, set labels.Set) bool {
	t.Helper()
	parsed, err := labels.Parse(f.lister.Labels)
	require.NoError(t, err)
	return parsed.Matches(set)
}

// selecting are the feeds to which an API server sends an object.
func selecting(t *testing.T, feeds []feeder, kind snapshot.Kind, set labels.Set) []feeder {
	t.Helper()
	var out []feeder
	for _, f := range feeds {
		if s, ok := f.(selector); f.kind() == kind && ok && s.selects(t, set) {
			out = append(out, f)
		}
	}
	return out
}

// TestEveryObjectThatIsNotOursIsAskedFor, once, whatever labels it has.
func TestEveryObjectThatIsNotOursIsAskedFor(t *testing.T) {
	t.Parallel()
	plane := snapshot.Plane{Namespace: "mgmt", ID: "p1"}
	managed, err := newManagedCache(&rest.Config{Host: "https://127.0.0.1:1"}, scheme.New(), plane, &snapshot.Cluster{Name: "west"}, withoutStatuses, nil, func() {})
	require.NoError(t, err)
	byMesh := []snapshot.Kind{snapshot.VirtualService, snapshot.DestinationRule, snapshot.ServiceEntry, snapshot.AuthorizationPolicy, snapshot.Sidecar}
	values := []string{"absent", "", "mgmt", "west", "p1"}
	for i := range len(values) * len(values) * len(values) {
		set := labels.Set{"app": "a"}
		for label, value := range map[string]string{
			snapshot.NetworkingOwnerLabel: values[i%len(values)], snapshot.ClusterLabel: values[i/len(values)%len(values)],
			snapshot.PlaneLabel: values[i/len(values)/len(values)],
		} {
			if value != "absent" {
				set[label] = value
			}
		}
		for _, kind := range kindsOf(managed.feeds) {
			if kind == snapshot.MutatingWebhookConfiguration {
				continue // only injectors are
			}
			want := 1
			if slices.Contains(byMesh, kind) && plane.Generated(set, "west") {
				want = 0
			}
			assert.Len(t, selecting(t, managed.feeds, kind, set), want, "%s with %s", kind, set)
		}
	}
}

// TestTwoFeedsAreOneList: readers get the objects of both, ascending, and the same slice
// until something changes.
func TestTwoFeedsAreOneList(t *testing.T) {
	t.Parallel()
	managed, err := newManagedCache(&rest.Config{Host: "https://127.0.0.1:1"}, scheme.New(), snapshot.Plane{Namespace: "mgmt", ID: "p1"}, &snapshot.Cluster{Name: "west"}, withoutStatuses, nil, func() {})
	require.NoError(t, err)
	var stores []cache.ReflectorStore
	for _, f := range managed.feeds {
		if store, ok := f.(cache.ReflectorStore); ok && f.kind() == snapshot.VirtualService {
			stores = append(stores, store)
		}
	}
	require.Len(t, stores, 3)
	object := func(name string) *istionetworkingv1.VirtualService {
		return &istionetworkingv1.VirtualService{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: name}, Spec: networking.VirtualService{Hosts: []string{name}}}
	}
	var view snapshot.Cluster
	read := func() (names []string) {
		changed := managed.copyTo(&view)
		assert.False(t, managed.copyTo(&view), "nothing changed")
		for _, o := range view.VirtualServices {
			names = append(names, o.Name)
		}
		if !changed {
			names = append(names, "as before")
		}
		return names
	}
	assert.Equal(t, []string{"as before"}, read())
	require.NoError(t, stores[0].Replace([]any{object("a"), object("c")}, ""))
	assert.Equal(t, []string{"a", "c"}, read())
	require.NoError(t, stores[1].Add(object("b")))
	assert.Equal(t, []string{"a", "b", "c"}, read())
	first := view.VirtualServices[0]
	require.NoError(t, stores[1].Add(object("c")))
	assert.Equal(t, []string{"a", "b", "c"}, read(), "its labels changed, and one of two has heard of it")
	require.NoError(t, stores[0].Delete(object("c")))
	assert.Equal(t, []string{"a", "b", "c"}, read())
	assert.Same(t, first, view.VirtualServices[0])
	require.NoError(t, stores[0].Replace(nil, ""))
	assert.Equal(t, []string{"b", "c"}, read())
	require.NoError(t, stores[1].Replace(nil, ""))
	assert.Empty(t, read())
}
