package demo

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// TestDiscoveredObjectsCountForTheirCluster: the first cluster stores the meshes of all clusters, and
// the table counts each one for the cluster that has it.
func TestDiscoveredObjectsCountForTheirCluster(t *testing.T) {
	t.Parallel()
	in := func(cluster string) unstructured.Unstructured {
		var o unstructured.Unstructured
		o.SetLabels(map[string]string{discoveryClusterLabel: cluster})
		return o
	}
	objects := []unstructured.Unstructured{in("cluster-1"), in("cluster-2"), in("cluster-2")}
	for _, line := range counts() {
		if !line.discovered {
			assert.Equal(t, 3, line.of("cluster-1", objects), "%s are of the cluster that was asked", line.title)
			continue
		}
		assert.Equal(t, 1, line.of("cluster-1", objects), line.title)
		assert.Equal(t, 2, line.of("cluster-2", objects), line.title)
		assert.Zero(t, line.of("cluster-3", objects), line.title)
	}
}
