package cmd_test

import (
	"encoding/json"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/meshctl/meshctl/cmd/cmdutil"
	"github.com/meshctl/meshctl/engine/explain"
	"github.com/meshctl/meshctl/engine/snapshot"
)

// TestCountsOfCommands: check and describe problems count the same in the recorded fleet and in every golden case, and the exit code
// of check follows from that.
func TestCountsOfCommands(t *testing.T) {
	t.Parallel()
	fleet := filepath.Join(t.TempDir(), "fleet.zip")
	_, errs, code := run(t.Context(), "demo", "show", "--save", fleet)
	require.Zero(t, code, errs)
	dirs, err := filepath.Glob("../testdata/translate/*/in")
	require.NoError(t, err)
	wrong := 0
	for _, dir := range append(dirs, fleet) {
		out, errs, code := run(t.Context(), "check", "--dir", dir, "-o", "json")
		var checkup explain.Checkup
		require.NoError(t, json.Unmarshal([]byte(out), &checkup), "%s: %s", dir, errs)
		want := checkup.Problems
		wrong += want.Wrong()
		if want.Errors > 0 {
			assert.Equal(t, cmdutil.ExitFindings, code, dir)
		}

		out, _, code = run(t.Context(), "describe", "problems", "--dir", dir, "-o", "json")
		assert.Zero(t, code, dir)
		var problems []snapshot.Issue
		require.NoError(t, json.Unmarshal([]byte(out), &problems), dir)
		assert.Equal(t, want, explain.Count(problems), dir)
		if len(problems) > 0 {
			_, errs, _ = run(t.Context(), "describe", "problems", "--dir", dir)
			assert.Contains(t, errs, want.String()+"\n", dir)
		}
	}
	assert.Greater(t, wrong, 100, "the cases have something to count")
}
