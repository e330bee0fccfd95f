package version

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/meshctl/meshctl/cmd/cmdutil"
)

func TestNewCmd(t *testing.T) {
	t.Parallel()
	streams, _, _, _ := cmdutil.TestStreams()
	var got *Options
	cmd := NewCmd(&cmdutil.Factory{Streams: streams, Version: cmdutil.Version{Version: "v1"}}, func(o *Options) error { got = o; return nil })
	cmd.SetArgs([]string{"-o", "yaml"})
	require.NoError(t, cmd.Execute())
	assert.Equal(t, cmdutil.FormatYAML, got.Output.Format)
	assert.Equal(t, "v1", got.Version.Version)
}

func TestVersionRun(t *testing.T) {
	t.Parallel()
	v := cmdutil.Version{Version: "v1.2.3", Commit: "abc", Modified: true, Go: "go1", Platform: "linux/amd64"}
	cases := map[cmdutil.Format]string{
		cmdutil.FormatTable: "Version    v1.2.3\nCommit     abc (modified)\nGo         go1\nPlatform   linux/amd64\n",
		cmdutil.FormatYAML:  "client:\n  commit: abc\n  go: go1\n  modified: true\n  platform: linux/amd64\n  version: v1.2.3\n",
	}
	for format, want := range cases {
		t.Run(string(format), func(t *testing.T) {
			t.Parallel()
			streams, _, out, errs := cmdutil.TestStreams()
			require.NoError(t, versionRun(&Options{Streams: streams, Version: v, Output: cmdutil.OutputFlag{Format: format}}))
			assert.Equal(t, want, out.String())
			assert.Empty(t, errs.String())
		})
	}
}
