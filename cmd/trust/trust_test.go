package trust

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/meshctl/meshctl/cmd/cmdutil"
)

func TestNewCmdShow(t *testing.T) {
	t.Parallel()
	streams, _, _, _ := cmdutil.TestStreams()
	var got *ShowOptions
	run := func(args ...string) error {
		cmd := newCmdShow(cmdutil.NewFactory(streams), func(_ context.Context, o *ShowOptions) error { got = o; return nil })
		cmd.SetArgs(args)
		cmd.SilenceErrors, cmd.SilenceUsage = true, true
		return cmd.ExecuteContext(t.Context())
	}
	require.NoError(t, run())
	assert.Empty(t, got.VirtualMesh)
	assert.Equal(t, "gloo-mesh", got.Source.Namespace)
	require.NoError(t, run("vm", "-n", "mesh", "-o", "wide", "--clusters"))
	assert.Equal(t, "vm", got.VirtualMesh)
	assert.Equal(t, "mesh", got.Source.Namespace)
	assert.Equal(t, cmdutil.FormatWide, got.Output.Format)
	assert.True(t, got.Clusters)
	for _, args := range [][]string{{"a", "b"}, {"-o", "xml"}, {"--dir", ".", "--clusters"}} {
		assert.Error(t, run(args...), args)
	}
}

func TestNewCmdChange(t *testing.T) {
	t.Parallel()
	streams, _, _, _ := cmdutil.TestStreams()
	var got *Options
	run := func(use string, args ...string) error {
		for _, a := range actions() {
			if a.use == use {
				cmd := newCmdChange(cmdutil.NewFactory(streams), a, func(_ context.Context, o *Options) error { got = o; return nil })
				cmd.SetArgs(args)
				cmd.SilenceErrors, cmd.SilenceUsage = true, true
				return cmd.ExecuteContext(t.Context())
			}
		}
		return assert.AnError
	}
	require.NoError(t, run("rotate", "vm", "--yes", "--wait", "--timeout", "5m"))
	assert.Equal(t, "vm", got.VirtualMesh)
	assert.True(t, got.Yes)
	assert.True(t, got.Wait)
	assert.Equal(t, 5*time.Minute, got.Timeout)
	require.NoError(t, run("rollback", "vm", "--root", "4f2a"))
	assert.Equal(t, "4f2a", got.Root)
	require.NoError(t, run("pause", "vm"))
	require.NoError(t, run("resume", "vm"))
	for _, args := range [][]string{
		{"rotate"}, {"rotate", "a", "b"}, {"rotate", "vm", "--root", "4f2a"}, {"rotate", "vm", "--timeout", "5m"},
		{"rotate", "vm", "--wait", "--timeout", "-5m"}, {"pause", "vm", "--yes"}, {"resume", "vm", "--wait"}, {"rollback"}, {"pause", "vm", "--dir", "."},
	} {
		assert.Error(t, run(args[0], args[1:]...), args)
	}
}
