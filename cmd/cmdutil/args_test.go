package cmdutil_test

import (
	"testing"

	"github.com/stretchr/testify/assert"

	"github.com/meshctl/meshctl/cmd/cmdutil"
)

// TestTheNearestWordIsMeant: not the first of those that are near enough.
func TestTheNearestWordIsMeant(t *testing.T) {
	t.Parallel()
	known := []string{"relist", "list", "register", "deregister", "release"}
	for word, want := range map[string]string{
		"lst": "list", "relst": "relist", "regster": "register", "deregster": "deregister", "REGISTR": "register", "deregi": "deregister", "nothing": "",
	} {
		assert.Equal(t, want, cmdutil.Similar(word, known), word)
	}
}
