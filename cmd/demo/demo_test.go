package demo

import (
	"context"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/meshctl/meshctl/cmd/cmdutil"
)

func TestNewCmd(t *testing.T) {
	t.Parallel()
	cases := map[string]struct {
		dir, runtime, wantErr string
		osm                   bool
	}{
		"up":                       {runtime: "local"},
		"up --dir d --runtime x":   {dir: "d", runtime: "x"},
		"status --dir d -o json":   {dir: "d", runtime: "local"},
		"down --dir d":             {dir: "d", runtime: "local"},
		"kubeconfig":               {runtime: "local"},
		"prepare":                  {runtime: "local"},
		"prepare --osm":            {runtime: "local", osm: true},
		"up --osm":                 {wantErr: "unknown flag"},
		"up now":                   {wantErr: "takes no arguments"},
		"down --runtime something": {wantErr: "unknown flag"},
	}
	for line, c := range cases {
		t.Run(line, func(t *testing.T) {
			t.Parallel()
			streams, _, _, _ := cmdutil.TestStreams()
			var got *Options
			cmd := NewCmd(cmdutil.NewFactory(streams), func(_ context.Context, o *Options) error { got = o; return nil })
			cmd.SilenceErrors, cmd.SilenceUsage = true, true
			cmd.SetArgs(strings.Fields(line))
			err := cmd.Execute()
			if c.wantErr != "" {
				require.ErrorContains(t, err, c.wantErr)
				return
			}
			require.NoError(t, err)
			assert.Equal(t, c.dir, got.Dir)
			assert.Equal(t, c.runtime, got.Runtime)
			assert.Equal(t, c.osm, got.OSM)
		})
	}
}

// TestNoDemo: what each subcommand says where there is none.
func TestNoDemo(t *testing.T) {
	t.Parallel()
	streams, _, out, errs := cmdutil.TestStreams()
	opts := &Options{Streams: streams, Dir: t.TempDir() + "/none"}
	for _, run := range []func(context.Context, *Options) error{statusRun, kubeconfigRun} {
		err := run(t.Context(), opts)
		require.ErrorContains(t, err, "start one with `meshctl demo up`")
		assert.Equal(t, cmdutil.ExitNotFound, cmdutil.ExitCode(err))
	}
	require.NoError(t, downRun(t.Context(), opts), "it is down, which is what was asked for")
	assert.Equal(t, "No demo is running.\n", errs.String())
	assert.Empty(t, out.String())
}
