package discovery

import (
	"testing"

	"github.com/stretchr/testify/assert"

	"github.com/meshctl/meshctl/engine/snapshot"
)

// TestReuseComparesClashes: the same objects may need other names because of what else is there.
func TestReuseComparesClashes(t *testing.T) {
	t.Parallel()
	clash := map[snapshot.Ref]string{{Kind: snapshot.Workload, Name: "web-3b2e"}: "web"}
	older, newer := &snapshot.Discovered{Cluster: "a", Clashes: clash}, &snapshot.Discovered{Cluster: "a"}
	assert.Nil(t, Reuse(older, newer).Clashes)
	assert.Same(t, older, Reuse(older, &snapshot.Discovered{Cluster: "a", Clashes: map[snapshot.Ref]string{{Kind: snapshot.Workload, Name: "web-3b2e"}: "web"}}))
}
