package cmd_test

import (
	"context"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/meshctl/meshctl/cmd"
	"github.com/meshctl/meshctl/cmd/cmdutil"
)

const cases = "../testdata/translate"

// run runs the program and returns what it wrote and its exit code.
func run(ctx context.Context, args ...string) (out, errs string, code int) {
	streams, _, outBuffer, errBuffer := cmdutil.TestStreams()
	code = cmd.Run(ctx, streams, args)
	return outBuffer.String(), errBuffer.String(), code
}

// TestExitCodes pins the promise of `meshctl help exit-codes`.
func TestExitCodes(t *testing.T) {
	t.Parallel()
	dead := filepath.Join(t.TempDir(), "kubeconfig")
	require.NoError(t, os.WriteFile(dead, []byte(`{"apiVersion":"v1","kind":"Config","current-context":"a",
		"clusters":[{"name":"a","cluster":{"server":"https://127.0.0.1:1"}}],"contexts":[{"name":"a","context":{"cluster":"a"}}]}`), 0o600))
	invalid := []string{"create", "tp", "x", "--dir", cases + "/bookinfo/in", "--destination", "reviews.bookinfo.cluster-1", "--shift", "nowhere.bookinfo.cluster-1"}
	cases := map[string]struct {
		args []string
		want int
	}{
		"invalid, printed": {append(invalid[:len(invalid):len(invalid)], "--dry-run"), 5},
		"invalid, saved":   {append(invalid[:len(invalid):len(invalid)], "--save", filepath.Join(t.TempDir(), "x.yaml")), 5},
		"no mesh is left":  {[]string{"create", "vm", "x", "--dir", cases + "/bookinfo/in", "--all-meshes", "--dry-run"}, 3},
		"all and one":      {[]string{"create", "vm", "x", "--dir", cases + "/bookinfo/in", "--all-meshes", "--mesh", "a/b", "--dry-run"}, 2},
		"done":             {[]string{"version", "--client"}, 0},
		"help":             {[]string{"describe", "mesh", "--help"}, 0},
		"failed":           {[]string{"translate", "../testdata"}, 1},
		"unknown command":  {[]string{"nope"}, 2},
		"unknown flag":     {[]string{"version", "--nope"}, 2},
		"bad value":        {[]string{"version", "-o", "xml"}, 2},
		"missing argument": {[]string{"translate"}, 2},
		"flags that exclude each other": {
			[]string{"describe", "mesh", "--dir", cases, "--context", "x"}, 2,
		},
		"not found": {[]string{"describe", "mesh", "nope", "--dir", cases + "/bookinfo/in"}, 3},
		"no such policy": {
			[]string{"init", "--context", "x", "--no-register", "--no-virtual-mesh", "--dry-run", "--policy", "nowhere", "--kubeconfig", dead}, 3,
		},
		"no policy": {
			[]string{"init", "--context", "x", "--no-register", "--no-virtual-mesh", "--dry-run", "--policy", dead, "--kubeconfig", dead}, 2,
		},
		"no folder":     {[]string{"translate", "nowhere"}, 3},
		"no kubeconfig": {[]string{"describe", "mesh", "--kubeconfig", "nowhere"}, 4},
		"no answer":     {[]string{"describe", "mesh", "--kubeconfig", dead}, 4},
		"findings":      {[]string{"translate", cases + "/mistakes/in"}, 5},
		"no findings":   {[]string{"translate", cases + "/mistakes/in", "--fail-on", "never"}, 0},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			out, errs, code := run(t.Context(), c.args...)
			assert.Equal(t, c.want, code, "stdout: %s\nstderr: %s", out, errs)
			if code != 0 {
				assert.NotEmpty(t, errs, "a failure says why")
			}
		})
	}
}

func TestInterrupted(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	_, errs, code := run(ctx, "nope")
	assert.Equal(t, cmdutil.ExitInterrupted, code)
	assert.Equal(t, "Interrupted\n", errs)
}

// TestErrorsAreClean: what a cluster or a file says cannot act on the terminal.
func TestErrorsAreClean(t *testing.T) {
	t.Parallel()
	_, errs, code := run(t.Context(), "translate", cases+"/bookinfo/in", "--cluster", "a\x1b[2Jb")
	assert.Equal(t, cmdutil.ExitNotFound, code)
	assert.NotContains(t, errs, "\x1b")
	assert.Contains(t, errs, "a?[2Jb")
}
