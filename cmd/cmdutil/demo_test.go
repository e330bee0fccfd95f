package cmdutil_test

import (
	"errors"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/meshctl/meshctl/cmd/cmdutil"
)

// TestDemo: without a kubeconfig, the demo that runs is named, and used only when that is asked for.
func TestDemo(t *testing.T) {
	home := t.TempDir()
	t.Setenv("KUBECONFIG", filepath.Join(home, "none"))
	file := filepath.Join(home, "of demo")
	require.NoError(t, os.WriteFile(file, []byte(`{
		"apiVersion": "v1", "kind": "Config", "current-context": "cluster-1",
		"clusters": [{"name": "c", "cluster": {"server": "https://192.0.2.1:6443"}}], "users": [{"name": "u", "user": {"token": "t"}}],
		"contexts": [{"name": "cluster-1", "context": {"cluster": "c", "user": "u"}}]
	}`), 0o600))
	streams, _, _, _ := cmdutil.TestStreams()
	f := cmdutil.NewFactory(streams)
	_, err := f.Config("", "")
	require.ErrorContains(t, err, "has no context; set another one with --kubeconfig")
	require.NotContains(t, err.Error(), "demo")

	f.Demo.Find = func() (string, error) { return file, nil }
	_, err = f.Config("", "")
	require.ErrorContains(t, err, "A demo runs on this machine: add --demo, or run: export KUBECONFIG='"+file+"'")
	assert.Equal(t, cmdutil.ExitUnreachable, cmdutil.ExitCode(err))
	_, _, err = f.Contexts("")
	require.ErrorContains(t, err, "add --demo")

	f.Demo.Use = true
	config, err := f.Config("", "")
	require.NoError(t, err)
	assert.Equal(t, "https://192.0.2.1:6443", config.Host)
	names, current, err := f.Contexts("")
	require.NoError(t, err)
	assert.Equal(t, []string{"cluster-1"}, names)
	assert.Equal(t, "cluster-1", current)
	_, err = f.Config("other", "")
	require.ErrorContains(t, err, "--demo and --kubeconfig cannot be used together")
	assert.Equal(t, cmdutil.ExitUsage, cmdutil.ExitCode(err))

	f.Demo.Find = func() (string, error) { return "", errors.New("no demo is running; start one with `meshctl demo up`") }
	_, err = f.Config("", "")
	require.EqualError(t, err, "no demo is running; start one with `meshctl demo up`")
	f.Demo.Use = false
	_, err = f.Config("", "")
	require.NotContains(t, err.Error(), "--demo")
}
