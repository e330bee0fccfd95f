package snapshot_test

import (
	"testing"

	"github.com/stretchr/testify/assert"

	"github.com/meshctl/meshctl/engine/snapshot"
)

func TestCount(t *testing.T) {
	t.Parallel()
	for want, of := range map[string]struct {
		n    int
		word string
	}{
		"0 policies": {0, "policy"}, "1 policy": {1, "policy"}, "2 policies": {2, "policy"},
		"1 mesh": {1, "mesh"}, "12 meshes": {12, "mesh"}, "0 services": {0, "service"},
	} {
		assert.Equal(t, want, snapshot.Count(of.n, of.word))
	}
}
