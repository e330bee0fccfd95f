package watch

import (
	"encoding/json"
	"testing"

	"github.com/stretchr/testify/require"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/cache"

	"github.com/meshctl/meshctl/engine/api/scheme"
	"github.com/meshctl/meshctl/engine/mirror"
	"github.com/meshctl/meshctl/engine/snapshot"
)

// nowhere is an address at which nobody listens.
var nowhere = &rest.Config{Host: "https://127.0.0.1:1"}

// managedCache is that of a cluster which is not read.
func managedCache(t testing.TB, plane snapshot.Plane, name string, changed func()) *clusterCache[snapshot.Cluster] {
	t.Helper()
	cache, err := newManagedCache(nowhere, &mirror.Link{}, scheme.New(), plane, &snapshot.Cluster{Name: name}, withoutStatuses, nil, changed)
	require.NoError(t, err)
	return cache
}

// managementCache is that of a management cluster which is not read.
func managementCache(t testing.TB, plane snapshot.Plane, keep statuses) *clusterCache[snapshot.Management] {
	t.Helper()
	cache, err := newManagementCache(nowhere, &mirror.Link{}, scheme.New(), plane, keep, func() {})
	require.NoError(t, err)
	return cache
}

// wireStore stores an object of the API type as if an API server had sent it.
type wireStore interface {
	cache.ReflectorStore
	decoded(t testing.TB, object any) any
}

func (f *feed[T]) decoded(_ testing.TB, object any) any { return object }

func (m *mirrored[T]) decoded(t testing.TB, object any) any {
	t.Helper()
	raw, err := json.Marshal(object)
	require.NoError(t, err)
	out := &mirror.Observed{}
	require.NoError(t, json.Unmarshal(raw, out))
	return out
}

// wireOf is a feed as a store.
func wireOf(t testing.TB, f feeder) wireStore {
	t.Helper()
	store, ok := f.(wireStore)
	require.True(t, ok)
	return store
}

// isRead reports whether a feed fills a list.
func isRead(f feeder) bool {
	_, unread := f.(*mirrored[*mirror.Observed])
	return !unread
}
