package policy

import (
	"testing"

	"github.com/stretchr/testify/assert"

	"github.com/meshctl/meshctl/engine/snapshot"
)

// TestWhoDecides: the owners of the service and of the mesh, and no tenant.
func TestWhoDecides(t *testing.T) {
	t.Parallel()
	at := hostPlace{owner: "shop"}
	at.Mesh = &snapshot.MeshPlan{Namespace: "istio-system", RootNamespace: "root"}
	for namespace, decides := range map[string]bool{"shop": true, "root": true, "istio-system": true, "tenant": false, "": false} {
		assert.Equal(t, decides, at.decides(namespace), namespace)
	}
	at.owner = ""
	assert.False(t, at.decides("shop"), "the service is of another cluster")
}
