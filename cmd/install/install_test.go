package install

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"k8s.io/client-go/rest"

	"github.com/meshctl/meshctl/cmd/cmdutil"
	"github.com/meshctl/meshctl/demo/sandboxtest"
	"github.com/meshctl/meshctl/engine/registration"
	"github.com/meshctl/meshctl/engine/snapshot"
	"github.com/meshctl/meshctl/wizards"
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
	assert.Nil(t, got.Install.Replicas, "as installed before")
	assert.False(t, got.Install.Upgrade)

	require.NoError(t, run("upgrade", "--service-monitor=false", "--replicas", "3", "--wait=false", "--image-pull-secret", "a,b", "--memory-limit", "2Gi", "-n", "mesh"))
	assert.True(t, got.Install.Upgrade)
	assert.False(t, *got.Install.ServiceMonitor)
	assert.EqualValues(t, 3, *got.Install.Replicas)
	assert.Zero(t, got.Install.Wait)
	assert.Equal(t, []string{"a", "b"}, got.Install.PullSecrets)
	assert.Equal(t, "mesh", got.Install.Namespace)
	assert.Equal(t, registration.InstallRelay{}, got.Install.Relay, "as installed before")
	require.NoError(t, run("install", "--relay", "--relay-service-type", "NodePort", "--relay-host", "a.example,b.example"))
	assert.Equal(t, registration.InstallRelay{Enabled: &got.Relay, ServiceType: "NodePort", Hosts: []string{"a.example", "b.example"}}, got.Install.Relay)
	assert.True(t, got.Relay)

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

// answers gives the same answer to each question.
type answers struct {
	wizards.Prompter
	answer string
}

func (a answers) Select(wizards.Question, []wizards.Option, string) (string, error) {
	return a.answer, nil
}

func TestUninstall(t *testing.T) {
	t.Parallel()
	streams, _, _, _ := cmdutil.TestStreams()
	cmd := NewUninstallCmd(cmdutil.NewFactory(streams), nil)
	cmd.SetArgs(nil)
	cmd.SilenceErrors, cmd.SilenceUsage = true, true
	err := cmd.ExecuteContext(t.Context())
	assert.Equal(t, cmdutil.ExitUsage, cmdutil.ExitCode(err), "%v", err)
	require.ErrorContains(t, err, "--yes")

	config, err := sandboxtest.APIServers(t, 1)[0].Config()
	require.NoError(t, err)
	run := func(change func(*UninstallOptions)) (out, errs string) {
		streams, _, stdout, stderr := cmdutil.TestStreams()
		f := cmdutil.NewFactory(streams)
		f.Config = func(string, string) (*rest.Config, error) { return config, nil }
		o := &UninstallOptions{Streams: streams, Namespace: snapshot.DefaultNamespace, Output: cmdutil.OutputFlag{Format: cmdutil.FormatTable}, factory: f}
		change(o)
		require.NoError(t, uninstallRun(t.Context(), o))
		return stdout.String(), stderr.String()
	}
	_, errs := run(func(o *UninstallOptions) { o.Yes = true })
	assert.Contains(t, errs, "Nothing to remove")

	_, err = registration.Install(t.Context(), registration.InstallOptions{Config: config, Image: "meshctl:1"})
	require.NoError(t, err)
	out, errs := run(func(o *UninstallOptions) { o.DryRun = true })
	assert.Contains(t, out, "serve ends (meshctl:1, 0 of 2 replicas are ready)")
	assert.Empty(t, errs)
	_, errs = run(func(o *UninstallOptions) { o.Prompter = answers{answer: "no"} })
	assert.Contains(t, errs, "serve ends (meshctl:1")
	assert.Contains(t, errs, "Nothing was removed")
	out, errs = run(func(o *UninstallOptions) { o.Prompter = answers{answer: "yes"} })
	assert.Contains(t, out, "Deployment")
	assert.Contains(t, errs, "Uninstalled.")
	_, errs = run(func(o *UninstallOptions) { o.Yes = true })
	assert.Contains(t, errs, "Nothing to remove")
}
