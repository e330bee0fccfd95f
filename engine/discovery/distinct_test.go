package discovery

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/meshctl/meshctl/engine/snapshot"
)

// shopIn is a cluster whose Service "a" stands in the given namespace.
func shopIn(cluster, istioNamespace, namespace string) *snapshot.Discovered {
	b := newCluster(cluster)
	b.istiod(istioDefault).Namespace = istioNamespace
	b.ConfigMaps[0].Namespace = istioNamespace
	b.pod(b.deployment(namespace, "a", map[string]string{"app": "a"}), "a-1", "")
	b.service(namespace, "a", map[string]string{"app": "a"})
	return Discover(b.Cluster, Options{})
}

func TestDistinctLeavesWhatCannotClash(t *testing.T) {
	t.Parallel()
	all := []*snapshot.Discovered{shopIn("cluster-1", "istio-system", "b"), shopIn("cluster-2", "istio-system", "b")}
	got := Distinct(all)
	assert.Same(t, &all[0], &got[0])

	// The names of the clusters make a clash possible, but there is none.
	all = []*snapshot.Discovered{shopIn("c-d", "istio-system", "b"), shopIn("d", "istio-system", "b")}
	got = Distinct(all)
	assert.Same(t, all[0], got[0])
	assert.Same(t, all[1], got[1])
}

func TestDistinctRenamesTheLater(t *testing.T) {
	t.Parallel()
	first, later := shopIn("c-d", "istio", "b"), shopIn("d", "istio-c", "b-c")
	before := shopIn("d", "istio-c", "b-c")
	require.Equal(t, first.Meshes[0].Name, later.Meshes[0].Name)
	require.Equal(t, first.Destinations[0].Name, later.Destinations[0].Name)

	got := Distinct([]*snapshot.Discovered{first, later})
	assert.Same(t, first, got[0])
	assert.Equal(t, before, later, "the argument was changed")
	mesh, workload, destination := got[1].Meshes[0], got[1].Workloads[0], got[1].Destinations[0]
	assert.Regexp(t, `^istiod-istio-c-d-[0-9a-f]{8}$`, mesh.Name)
	assert.Regexp(t, `^a-b-c-d-deployment-[0-9a-f]{8}$`, workload.Name)
	assert.Regexp(t, `^a-b-c-d-[0-9a-f]{8}$`, destination.Name)
	assert.Equal(t, mesh.Name, workload.Spec.Mesh.Name)
	assert.Equal(t, mesh.Name, destination.Spec.Mesh.Name)
	require.Len(t, got[1].Issues, 3)
	for _, issue := range got[1].Issues {
		assert.Equal(t, snapshot.NameCollision, issue.Code)
		assert.Equal(t, "d", issue.Ref.Cluster)
	}
	assert.Equal(t, got[1], Distinct([]*snapshot.Discovered{first, later})[1], "the same each time")
}
