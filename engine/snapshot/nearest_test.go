package snapshot_test

import (
	"testing"

	"github.com/stretchr/testify/assert"

	"github.com/meshctl/meshctl/engine/snapshot"
)

// TestTheNearestWordIsMeant: not the first of those that are near enough, and none if none is near.
func TestTheNearestWordIsMeant(t *testing.T) {
	t.Parallel()
	known := []string{"relist", "list", "register", "deregister", "release", "GET", "PUT"}
	for word, want := range map[string]string{
		"lst": "list", "relst": "relist", "regster": "register", "deregster": "deregister", "REGISTR": "register", "deregi": "deregister",
		"GTE": "GET", "get": "GET", "ilst": "list", "nothing": "", "a": "", "l": "", "re": "", "": "", "lt": "", "seek": "",
	} {
		assert.Equal(t, want, snapshot.Nearest(word, known), word)
	}
}
