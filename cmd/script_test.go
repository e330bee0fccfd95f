package cmd_test

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/rogpeppe/go-internal/testscript"
	"github.com/stretchr/testify/require"

	"github.com/meshctl/meshctl/cmd"
	"github.com/meshctl/meshctl/engine/golden"
)

// TestMain lets scripts run this test binary as meshctl.
func TestMain(m *testing.M) {
	testscript.Main(m, map[string]func(){
		"meshctl": func() { os.Exit(cmd.Main(os.Args[1:])) },
	})
}

// TestScript runs every script of testdata/script on the whole program. Scripts
// find the cases of testdata/translate under $CASES.
func TestScript(t *testing.T) {
	t.Parallel()
	cases, err := filepath.Abs("../testdata/translate")
	require.NoError(t, err)
	testscript.Run(t, testscript.Params{
		Dir:                 "../testdata/script",
		UpdateScripts:       golden.Update(),
		RequireExplicitExec: true,
		Setup: func(env *testscript.Env) error {
			env.Setenv("CASES", cases)
			env.Setenv("HOME", env.WorkDir)
			env.Setenv("KUBECONFIG", filepath.Join(env.WorkDir, "none"))
			return nil
		},
	})
}
