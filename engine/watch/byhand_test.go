package watch

import (
	"slices"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/labels"

	"github.com/meshctl/meshctl/engine/mirror"
	"github.com/meshctl/meshctl/engine/snapshot"
)

// feedsOfKind are the feeds of a kind.
func feedsOfKind(feeds []feeder, kind snapshot.Kind) []feeder {
	var out []feeder
	for _, f := range feeds {
		if f.kind() == kind {
			out = append(out, f)
		}
	}
	return out
}

// TestEachKindIsWatchedOnce, and what the management plane generated is not read as if users had written it, whatever labels it has.
func TestEachKindIsWatchedOnce(t *testing.T) {
	t.Parallel()
	plane := snapshot.Plane{Namespace: "mgmt", ID: "p1"}
	managed := managedCache(t, plane, "west", func() {})
	for _, kind := range kindsOf(managed.feeds) {
		assert.Len(t, feedsOfKind(managed.feeds, kind), 1, kind)
	}
	byMesh := []snapshot.Kind{snapshot.VirtualService, snapshot.DestinationRule, snapshot.ServiceEntry, snapshot.AuthorizationPolicy, snapshot.Sidecar, snapshot.EnvoyFilter, snapshot.Gateway}
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
		for _, kind := range mirroredKinds(snapshot.ManagedSide) {
			f := feedsOfKind(managed.feeds, kind)[0]
			store := wireOf(t, f)
			object := &mirror.Observed{}
			object.Namespace, object.Name, object.Labels = "shop", "a", set
			object.Raw = []byte(`{"metadata":{"namespace":"shop","name":"a"}}`)
			require.NoError(t, store.Add(object))
			_, known := managed.conn.Find(mirror.ID{Kind: kind, Namespace: "shop", Name: "a"})
			assert.True(t, known, "%s with %s", kind, set)
			var view snapshot.Cluster
			managed.copyTo(&view)
			if isRead(f) {
				want := !slices.Contains(byMesh, kind) || !plane.Generated(set, "west")
				assert.Equal(t, want, view.List(kind).Len() == 1, "%s with %s", kind, set)
			}
			require.NoError(t, store.Delete(object))
			managed.copyTo(&view)
			if isRead(f) {
				assert.Zero(t, view.List(kind).Len())
			}
		}
	}
}
