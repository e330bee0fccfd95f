package version

import (
	"context"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"k8s.io/client-go/rest"

	"github.com/meshctl/meshctl/cmd/cmdutil"
	"github.com/meshctl/meshctl/demo/sandboxtest"
	"github.com/meshctl/meshctl/demo/waittest"
	"github.com/meshctl/meshctl/engine/registration"
)

func TestNewCmd(t *testing.T) {
	t.Parallel()
	streams, _, _, _ := cmdutil.TestStreams()
	var got *Options
	cmd := NewCmd(&cmdutil.Factory{Streams: streams, Version: cmdutil.Version{Version: "v1"}}, func(_ context.Context, o *Options) error { got = o; return nil })
	cmd.SetArgs([]string{"-o", "yaml", "--context", "here", "--client"})
	require.NoError(t, cmd.Execute())
	assert.Equal(t, cmdutil.FormatYAML, got.Output.Format)
	assert.Equal(t, "v1", got.Version.Version)
	assert.Equal(t, "here", got.Context)
	assert.True(t, got.Client)
}

func someVersion() cmdutil.Version {
	return cmdutil.Version{Version: "v1.2.3", Commit: "abc", Modified: true, Go: "go1", Platform: "linux/amd64"}
}

func TestVersionRun(t *testing.T) {
	t.Parallel()
	cases := map[cmdutil.Format]string{
		cmdutil.FormatTable: "Version    v1.2.3\nCommit     abc (modified)\nGo         go1\nPlatform   linux/amd64\n",
		cmdutil.FormatYAML:  "client:\n  commit: abc\n  go: go1\n  modified: true\n  platform: linux/amd64\n  version: v1.2.3\n",
	}
	for format, want := range cases {
		t.Run(string(format), func(t *testing.T) {
			t.Parallel()
			streams, _, out, errs := cmdutil.TestStreams()
			require.NoError(t, versionRun(t.Context(), &Options{Streams: streams, Client: true, Version: someVersion(), Output: cmdutil.OutputFlag{Format: format}}))
			assert.Equal(t, want, out.String())
			assert.Empty(t, errs.String())
		})
	}
}

// TestInstalled: what is installed in a cluster, and what to do where it differs.
func TestInstalled(t *testing.T) {
	t.Parallel()
	config, err := sandboxtest.APIServers(t, 1)[0].Config()
	require.NoError(t, err)
	run := func(config *rest.Config, version string) (out, errs string) {
		streams, _, stdout, stderr := cmdutil.TestStreams()
		v := someVersion()
		v.Version = version
		require.NoError(t, versionRun(t.Context(), &Options{
			Streams: streams, Version: v, Output: cmdutil.OutputFlag{Format: cmdutil.FormatTable}, Config: func() (*rest.Config, error) { return config, nil },
			Timeout: waittest.Limit(),
		}))
		return stdout.String(), stderr.String()
	}
	out, errs := run(&rest.Config{Host: "https://127.0.0.1:1"}, "v1.2.3")
	assert.Contains(t, out, "v1.2.3")
	assert.Contains(t, errs, "What is installed is not known")
	assert.Contains(t, errs, "127.0.0.1:1")

	out, errs = run(config, "v1.2.3")
	assert.Contains(t, out, "not installed in the cluster")
	assert.NotContains(t, out, "Skew")
	assert.Empty(t, errs)

	_, err = registration.Install(t.Context(), registration.InstallOptions{Config: config, Version: "v1.2.3"})
	require.NoError(t, err)
	_, err = registration.Register(t.Context(), registration.Options{Name: "here", RemoteConfig: config, MgmtConfig: config})
	require.NoError(t, err)
	out, errs = run(config, "v1.2.3")
	assert.Contains(t, out, "meshctl/meshctl:v1.2.3, 0 of 2 replicas are ready")
	assert.Contains(t, out, "0 of another, 0 missing")
	assert.Contains(t, out, "1 registered, 1 with the permissions of this version")
	assert.NotContains(t, out, "Skew")
	assert.Empty(t, errs)

	out, _ = run(config, "v1.3.0")
	assert.Contains(t, out, "Skew")
	assert.Contains(t, out, "installed in version v1.2.3")
}
