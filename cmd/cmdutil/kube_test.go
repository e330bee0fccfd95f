package cmdutil_test

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/spf13/cobra"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/meshctl/meshctl/cmd/cmdutil"
)

const kubeconfig = `apiVersion: v1
kind: Config
current-context: a
clusters:
- name: one
  cluster: {server: "https://one.example:6443"}
- name: two
  cluster: {server: "https://two.example:6443"}
contexts:
- name: b
  context: {cluster: two, user: u}
- name: a
  context: {cluster: one, user: u}
users:
- name: u
  user: {token: secret}
`

func TestConfig(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "config")
	require.NoError(t, os.WriteFile(path, []byte(kubeconfig), 0o600))
	streams, _, _, _ := cmdutil.TestStreams()
	factory := cmdutil.NewFactory(streams)

	config, err := factory.Config(path, "")
	require.NoError(t, err)
	assert.Equal(t, "https://one.example:6443", config.Host)
	assert.InDelta(t, -1, config.QPS, 0, "the API server's own fairness governs")
	assert.Contains(t, config.UserAgent, "meshctl/")

	config, err = factory.Config(path, "b")
	require.NoError(t, err)
	assert.Equal(t, "https://two.example:6443", config.Host)

	names, err := cmdutil.Contexts(path)
	require.NoError(t, err)
	assert.Equal(t, []string{"a", "b"}, names)

	for name, c := range map[string]struct{ path, context, want string }{
		"no file":    {path + "x", "", "the file does not exist; set another one with --kubeconfig"},
		"a folder":   {filepath.Dir(path), "", "is a folder; set a file with --kubeconfig"},
		"no context": {path, "c", `context "c" does not exist; choose one of: a, b`},
	} {
		_, err := factory.Config(c.path, c.context)
		require.Error(t, err, name)
		assert.Contains(t, err.Error(), c.want, name)
		assert.Equal(t, cmdutil.ExitUnreachable, cmdutil.ExitCode(err), name)
		assert.NotContains(t, err.Error(), "secret", name)
	}
}

func TestKubeFlags(t *testing.T) {
	t.Parallel()
	for _, spelling := range []string{"--context", "--kubecontext"} {
		var flags cmdutil.KubeFlags
		cmd := &cobra.Command{Use: "x", RunE: func(*cobra.Command, []string) error { return nil }}
		flags.AddFlags(cmd)
		cmd.SetArgs([]string{spelling, "b", "--kubeconfig", "f"})
		require.NoError(t, cmd.Execute())
		assert.Equal(t, cmdutil.KubeFlags{Kubeconfig: "f", Context: "b"}, flags)
	}
}
