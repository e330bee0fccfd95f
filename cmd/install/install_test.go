package install

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/meshctl/meshctl/cmd/cmdutil"
)

func TestNewCmd(t *testing.T) {
	t.Parallel()
	streams, _, _, _ := cmdutil.TestStreams()
	f := &cmdutil.Factory{Streams: streams, Version: cmdutil.Version{Version: "v1.2.3"}}
	var got *Options
	run := func(args ...string) error {
		cmd := NewCmd(f, func(_ context.Context, o *Options) error { got = o; return nil })
		if args[0] == "upgrade" {
			cmd = NewUpgradeCmd(f, func(_ context.Context, o *Options) error { got = o; return nil })
		}
		cmd.SetArgs(args[1:])
		cmd.SilenceErrors, cmd.SilenceUsage = true, true
		return cmd.ExecuteContext(t.Context())
	}
	require.NoError(t, run("install"))
	assert.Equal(t, "v1.2.3", got.Install.Version)
	assert.Equal(t, 5*time.Minute, got.Install.Wait)
	assert.Nil(t, got.Install.ServiceMonitor, "as installed before")
	assert.Zero(t, got.Install.Replicas, "as installed before")
	assert.False(t, got.Install.Upgrade)

	require.NoError(t, run("upgrade", "--service-monitor=false", "--replicas", "3", "--wait=false", "--image-pull-secret", "a,b", "--memory-limit", "2Gi", "-n", "mesh"))
	assert.True(t, got.Install.Upgrade)
	assert.False(t, *got.Install.ServiceMonitor)
	assert.EqualValues(t, 3, got.Install.Replicas)
	assert.Zero(t, got.Install.Wait)
	assert.Equal(t, []string{"a", "b"}, got.Install.PullSecrets)
	assert.Equal(t, "mesh", got.Install.Namespace)

	for _, args := range []string{"install --replicas 0", "install now", "install --image a --registry b", "upgrade --dry-run", "install -o wide"} {
		assert.Error(t, run(strings.Fields(args)...), args)
	}
}

// TestDryRun: it needs no cluster, and says what is missing.
func TestDryRun(t *testing.T) {
	t.Parallel()
	run := func(version string, format cmdutil.Format) (string, error) {
		streams, _, out, _ := cmdutil.TestStreams()
		cmd := NewCmd(&cmdutil.Factory{Streams: streams, Version: cmdutil.Version{Version: version}}, nil)
		cmd.SetArgs([]string{"--dry-run", "-o", string(format)})
		cmd.SilenceErrors, cmd.SilenceUsage = true, true
		err := cmd.ExecuteContext(t.Context())
		return out.String(), err
	}
	text, err := run("v1.2.3", cmdutil.FormatYAML)
	require.NoError(t, err)
	assert.Contains(t, text, "image: meshctl/meshctl:v1.2.3")
	assert.Contains(t, text, "app.kubernetes.io/version: v1.2.3")
	text, err = run("v1.2.3", cmdutil.FormatJSON)
	require.NoError(t, err)
	assert.Contains(t, text, `"kind": "List"`)
	text, err = run("dev", cmdutil.FormatYAML)
	require.ErrorContains(t, err, "--image")
	assert.Empty(t, text)
}
