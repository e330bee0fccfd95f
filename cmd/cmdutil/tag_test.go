package cmdutil_test

import (
	"testing"

	"github.com/stretchr/testify/assert"

	"github.com/meshctl/meshctl/cmd/cmdutil"
)

func TestTag(t *testing.T) {
	t.Parallel()
	for version, want := range map[string]string{
		"v1.2.3": "v1.2.3", "v1.2.3-rc.1": "v1.2.3-rc.1",
		"dev": "", "v1.2.3+dirty": "", "v1.2.3-0.20260101000000-0123456789ab": "",
	} {
		assert.Equal(t, want, cmdutil.Version{Version: version}.Tag(), version)
	}
}
