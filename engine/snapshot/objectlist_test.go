package snapshot_test

import (
	"reflect"
	"slices"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	networkingv1 "github.com/meshctl/meshctl/engine/api/networking/v1"
	"github.com/meshctl/meshctl/engine/api/scheme"
	"github.com/meshctl/meshctl/engine/snapshot"
)

// views are an empty Management and an empty Cluster.
func views() map[snapshot.Side]snapshot.ObjectLists {
	return map[snapshot.Side]snapshot.ObjectLists{snapshot.ManagementSide: &snapshot.Management{}, snapshot.ManagedSide: &snapshot.Cluster{}}
}

// TestEveryKindHasItsList: what is read is held, under its own type, and every
// field that holds objects is in the table, once.
func TestEveryKindHasItsList(t *testing.T) {
	t.Parallel()
	types := scheme.New()
	for side, view := range views() {
		for _, k := range snapshot.Kinds(side, snapshot.Watch) {
			assert.NotNil(t, view.List(k), "%s is watched, but no list holds it: add a field and a line to objectlist.go", k)
		}
		fields := map[any]string{}
		value := reflect.ValueOf(view).Elem()
		for i := range value.NumField() {
			if f := value.Field(i); f.Kind() == reflect.Slice && f.Type() != reflect.TypeFor[[]snapshot.Unread]() && f.Type() != reflect.TypeFor[[]snapshot.Kind]() {
				fields[value.Field(i).Addr().Interface()] = value.Type().Field(i).Name
			}
		}
		if c, ok := view.(*snapshot.Cluster); ok {
			for k := range c.OfMeshes {
				if k := snapshot.Kind(k); k.Info().ByHand {
					fields[&c.OfMeshes[k]] = k.String()
				}
			}
		}
		for k, list := range view.Lists {
			assert.Contains(t, snapshot.Kinds(side, snapshot.Watch|snapshot.Write|snapshot.InClusters), k)
			gvks, _, err := types.ObjectKinds(list.New())
			require.NoError(t, err, "%s", k)
			assert.Contains(t, gvks, k.Info().GroupVersionKind)
			assert.Equal(t, reflect.TypeOf(list.New()), reflect.TypeOf(k.New()))
			found, ok := snapshot.KindOfObject(list.New())
			assert.True(t, ok)
			assert.Equal(t, k, found)
			at := reflect.ValueOf(list).Field(0)
			pointer := reflect.NewAt(at.Type().Elem(), at.UnsafePointer()).Interface()
			assert.Contains(t, fields, pointer, "%s: its list is no field, or that of another kind", k)
			delete(fields, pointer)
		}
		assert.Empty(t, fields, "fields of %T that no kind has: add a line to objectlist.go", view)
	}
	for _, k := range snapshot.Kinds(snapshot.ManagementSide, snapshot.WriteStatus) {
		assert.NotNil(t, snapshot.StatusOf(k.New()), "%s has a status that is written", k)
	}
	assert.Nil(t, snapshot.StatusOf(snapshot.Pod.New()))
	assert.Nil(t, snapshot.Secret.New(), "Secrets are no part of an Input")
	assert.Nil(t, snapshot.NoKind.New())
}

func named[T snapshot.APIObject](o T, name string) T {
	o.SetNamespace("bookinfo")
	o.SetName(name)
	return o
}

// manyObjects is an Input with three objects of every kind in two clusters.
func manyObjects(t *testing.T) *snapshot.Input {
	t.Helper()
	in := &snapshot.Input{Management: &snapshot.Management{}, Clusters: []*snapshot.Cluster{{Name: "east"}, {Name: "west"}}}
	for _, view := range []snapshot.ObjectLists{in.Management, in.Clusters[0], in.Clusters[1]} {
		for _, list := range view.Lists {
			require.NoError(t, list.Set([]snapshot.APIObject{named(list.New(), "a"), named(list.New(), "c"), named(list.New(), "e")}))
		}
	}
	return in
}

// TestObjectsOfAnInput: each object is found under the Ref with which it is listed.
func TestObjectsOfAnInput(t *testing.T) {
	t.Parallel()
	in := manyObjects(t)
	n := 0
	for ref, o := range in.Objects {
		n++
		assert.Same(t, o, in.Find(ref), "%s", ref)
		ref.Name = "b"
		assert.Nil(t, in.Find(ref), "%s", ref)
	}
	want := 0
	for _, view := range []snapshot.ObjectLists{in.Management, in.Clusters[0], in.Clusters[1]} {
		for _, list := range view.Lists {
			want += list.Len()
		}
	}
	assert.Equal(t, want, n)
	for range in.Objects {
		break
	}
	assert.Nil(t, in.Find(snapshot.Ref{Kind: snapshot.Pod, Cluster: "north", Namespace: "bookinfo", Name: "a"}))
	assert.Nil(t, in.Find(snapshot.Ref{Kind: snapshot.Pod, Namespace: "bookinfo", Name: "a"}), "not on the management plane")
	assert.Nil(t, in.Find(snapshot.Ref{Kind: snapshot.Secret, Namespace: "bookinfo", Name: "a"}))
}

// TestInputWithAndWithout: an edit is in the copy, the Input stays as it was, and
// they share all else.
func TestInputWithAndWithout(t *testing.T) {
	t.Parallel()
	in := manyObjects(t)
	before := map[snapshot.Ref]snapshot.APIObject{}
	for ref, o := range in.Objects {
		before[ref] = o
	}
	for was := range in.Objects {
		for i, name := range []string{"0", "a", "b", "c", "d", "e", "f"} {
			ref := was
			ref.Name = name
			o := named(ref.Kind.New(), name)
			with, err := in.With(ref.Cluster, o)
			require.NoError(t, err)
			requireEdit(t, in, with, ref, o, before)
			if i%2 == 0 {
				assert.Same(t, in, in.Without(ref))
				continue
			}
			requireEdit(t, in, in.Without(ref), ref, nil, before)
			requireEdit(t, in, with.Without(ref), ref, nil, before)
		}
	}
	for ref, o := range in.Objects {
		require.Same(t, before[ref], o)
	}
}

// requireEdit fails unless out is in with another object of a Ref.
func requireEdit(t *testing.T, in, out *snapshot.Input, ref snapshot.Ref, want snapshot.APIObject, before map[snapshot.Ref]snapshot.APIObject) {
	t.Helper()
	require.Equal(t, want, out.Find(ref))
	n, last := 0, snapshot.Ref{}
	for r, o := range out.Objects {
		if r.Kind == last.Kind && r.Cluster == last.Cluster {
			require.Negative(t, last.Compare(r), "ascending")
		}
		last = r
		if n++; r != ref {
			require.Same(t, before[r], o)
		}
	}
	wantN := len(before)
	if before[ref] != nil {
		wantN--
	}
	if want != nil {
		wantN++
	}
	require.Equal(t, wantN, n)
	for side, pair := range map[string][2]snapshot.ObjectLists{"": {in.Management, out.Management}, "east": {in.Clusters[0], out.Clusters[0]}, "west": {in.Clusters[1], out.Clusters[1]}} {
		require.Equal(t, side != ref.Cluster, pair[0] == pair[1], "%s: %s", ref, side)
		for k, list := range pair[0].Lists {
			require.Equal(t, side != ref.Cluster || k != ref.Kind, list.Same(pair[1].List(k)), "%s: %s", ref, k)
		}
	}
}

func TestInputRefusesWhatItCannotHold(t *testing.T) {
	t.Parallel()
	in := manyObjects(t)
	_, err := in.With("", &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Name: "s"}})
	require.ErrorContains(t, err, "*v1.Secret")
	_, err = in.With("", &unstructured.Unstructured{Object: map[string]any{"metadata": map[string]any{"name": "u"}}})
	require.ErrorContains(t, err, "unstructured")
	_, err = in.With("north", &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "bookinfo", Name: "p"}})
	require.ErrorContains(t, err, "Pod north/bookinfo/p")
	_, err = in.With("", &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "bookinfo", Name: "p"}})
	require.ErrorContains(t, err, "Pod bookinfo/p")
	require.ErrorContains(t, in.Management.List(snapshot.TrafficPolicy).Set([]snapshot.APIObject{&corev1.Pod{}}), "*v1.Pod")
	assert.Nil(t, snapshot.Slice[*corev1.Pod](in.Management.List(snapshot.TrafficPolicy)))
}

func TestSlice(t *testing.T) {
	t.Parallel()
	in := manyObjects(t)
	policies := snapshot.Slice[*networkingv1.TrafficPolicy](in.Management.List(snapshot.TrafficPolicy))
	assert.Same(t, &in.Management.TrafficPolicies, policies)
	assert.True(t, snapshot.SameSlice(*policies, in.Management.TrafficPolicies))
	assert.False(t, snapshot.SameSlice(*policies, slices.Clone(*policies)))
	assert.True(t, snapshot.SameSlice(nil, []int{}))
}
