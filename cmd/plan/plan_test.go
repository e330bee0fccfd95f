package plan_test

import (
	"testing"

	"github.com/stretchr/testify/assert"

	"github.com/meshctl/meshctl/cmd"
	"github.com/meshctl/meshctl/cmd/cmdutil"
)

// TestExitCodes: 2 means that something changes, so no mistake may have it.
func TestExitCodes(t *testing.T) {
	t.Parallel()
	const folder = "../../testdata/translate/bookinfo/in"
	for _, tt := range []struct {
		args []string
		want int
	}{
		{[]string{"-f", folder + "/management/policies.yaml", "--dir", folder}, 0},
		{[]string{"-f", folder + "/management/policies.yaml", "--dir", folder, "--delete"}, 2},
		{[]string{"-f", folder + "/management/policies.yaml", "--dir", folder, "--delete", "--fail-on", "access-lost"}, 5},
		{nil, 1},
		{[]string{"-f"}, 1},
		{[]string{"argument"}, 1},
		{[]string{"--no-such-flag"}, 1},
		{[]string{"-f", "x", "-o", "table"}, 1},
		{[]string{"-f", "x", "--dir", folder, "--context", "y"}, 1},
		{[]string{"-f", "missing", "--dir", folder}, 1},
		{[]string{"-f", folder, "--dir", "missing"}, 1},
		{[]string{"-f", folder + "/management/policies.yaml", "--kubeconfig", "missing"}, 1},
	} {
		streams, _, out, errs := cmdutil.TestStreams()
		assert.Equal(t, tt.want, cmd.Run(t.Context(), streams, append([]string{"plan"}, tt.args...)), "%v: %s", tt.args, errs)
		if tt.want == 1 {
			assert.Empty(t, out.String(), tt.args)
			assert.NotEmpty(t, errs.String(), tt.args)
		}
	}
}
