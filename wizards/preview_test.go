package wizards_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/meshctl/meshctl/engine/enginetest"
	"github.com/meshctl/meshctl/engine/snapshot"
	"github.com/meshctl/meshctl/wizards"
)

// TestPreviewNamesWhatWasNotRead: objects in the clusters may make the management
// plane reject a policy; a preview that has not read them says so.
func TestPreviewNamesWhatWasNotRead(t *testing.T) {
	t.Parallel()
	in := enginetest.World(enginetest.Size{Services: 1, Clusters: 2})
	policy := &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "networking.mesh.gloo.solo.io/v1", "kind": "TrafficPolicy",
		"metadata": map[string]any{"name": "slow", "namespace": "gloo-mesh"},
		"spec":     map[string]any{"policy": map[string]any{"requestTimeout": "1s"}},
	}}
	summary := func() string {
		preview, err := wizards.NewCatalog(in, time.Unix(0, 0)).Preview(policy)
		require.NoError(t, err)
		return wizards.Text(preview.Summary())
	}
	in.RefuseIntersecting = true
	assert.NotContains(t, summary(), "were not read", "both were")
	in.Clusters[1] = &snapshot.Cluster{Name: in.Clusters[1].Name}
	assert.Contains(t, summary(), "The management plane rejects policies that intersect with hand-written objects. Those in cluster-02 were not read.\n")
	in.RefuseIntersecting = false
	assert.NotContains(t, summary(), "were not read", "it makes no difference")

	policy.SetKind("Dashboard")
	_, err := wizards.NewCatalog(in, time.Unix(0, 0)).Preview(policy)
	require.ErrorContains(t, err, "Dashboard cannot be previewed")
}
