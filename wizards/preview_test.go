package wizards_test

import (
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/meshctl/meshctl/engine/enginetest"
	"github.com/meshctl/meshctl/engine/offline"
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

// TestPreviewOfWhatIsStored: what follows from an object depends on its stored status and generation, for
// example which generation was in force. To write an object again as it is changes nothing.
func TestPreviewOfWhatIsStored(t *testing.T) {
	t.Parallel()
	cases, err := filepath.Glob("../testdata/translate/*/in")
	require.NoError(t, err)
	count := 0
	for _, dir := range cases {
		in, _, err := offline.Load(offline.Dir(dir))
		require.NoError(t, err)
		catalog := wizards.NewCatalog(in, time.Unix(0, 0))
		for ref, stored := range in.Objects {
			if info := ref.Kind.Info(); ref.Cluster != "" || info.Side != snapshot.ManagementSide || info.Access&snapshot.Watch == 0 {
				continue
			}
			content, err := runtime.DefaultUnstructuredConverter.ToUnstructured(stored)
			require.NoError(t, err)
			object := &unstructured.Unstructured{Object: map[string]any{"spec": content["spec"]}}
			object.SetAPIVersion(ref.Kind.GroupVersionResource().GroupVersion().String())
			object.SetKind(ref.Kind.String())
			object.SetName(ref.Name)
			object.SetNamespace(ref.Namespace)
			object.SetLabels(stored.GetLabels())
			object.SetAnnotations(stored.GetAnnotations())
			preview, err := catalog.Preview(object)
			require.NoError(t, err)
			count++
			assert.True(t, preview.Empty(), "%s: %s:\n%s", dir, ref, wizards.Text(preview.Summary()))
		}
	}
	assert.Greater(t, count, 300)
}
