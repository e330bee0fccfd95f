package discovery_test

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/meshctl/meshctl/engine/discovery"
	"github.com/meshctl/meshctl/engine/discovery/clustertest"
	"github.com/meshctl/meshctl/engine/snapshot"
)

// Names that fit are those of Gloo Mesh 1.x; longer ones are valid, too.
func TestWorkloadNames(t *testing.T) {
	t.Parallel()
	for name, want := range map[string]string{
		"reviews-v1":            "reviews-v1-bookinfo-cluster-1-deployment",
		strings.Repeat("n", 33): strings.Repeat("n", 33) + "-bookinfo-cluster-1-deployment",
		strings.Repeat("n", 34): strings.Repeat("n", 31) + "-",
	} {
		b := clustertest.New("cluster-1")
		b.Istiod("default")
		b.Pod(b.Deployment("bookinfo", name, nil), "p", "")
		got := discovery.Discover(b.Cluster, options()).Workloads
		require.Len(t, got, 1)
		assert.True(t, strings.HasPrefix(got[0].Name, want), got[0].Name)
		assert.LessOrEqual(t, len(got[0].Name), snapshot.MaxName)
		assert.Empty(t, validation.IsDNS1123Label(got[0].Name))
	}
}
