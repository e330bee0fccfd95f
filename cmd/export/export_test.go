package export

import (
	"context"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/meshctl/meshctl/cmd/cmdutil"
	"github.com/meshctl/meshctl/engine/offline"
	"github.com/meshctl/meshctl/engine/snapshot"
)

func TestFlags(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		args []string
		to   string
		bad  string
	}{
		"print":  {nil, "", ""},
		"folder": {[]string{"fleet"}, "fleet", ""},
		"both":   {[]string{"fleet", "-o", "yaml"}, "", "leave one of them out"},
		"two":    {[]string{"a", "b"}, "", `unexpected argument "b"`},
		"format": {[]string{"-o", "table"}, "", "must be one of yaml, json"},
	} {
		streams, _, _, _ := cmdutil.TestStreams()
		var got *Options
		cmd := NewCmd(cmdutil.NewFactory(streams), func(_ context.Context, o *Options) error {
			got = o
			return nil
		})
		cmd.SilenceErrors, cmd.SilenceUsage = true, true
		cmd.SetArgs(c.args)
		err := cmd.Execute()
		if c.bad != "" {
			require.ErrorContains(t, err, c.bad, name)
			continue
		}
		require.NoError(t, err, name)
		assert.Equal(t, c.to, got.To, name)
	}
}

// TestNothingIsLeftOutInSilence: an object that cannot be read ends the export before a file is written or removed.
func TestNothingIsLeftOutInSilence(t *testing.T) {
	t.Parallel()
	broken := snapshot.Failure{Ref: snapshot.Ref{Kind: snapshot.TrafficPolicy, Namespace: "a", Name: "b"}, Reason: snapshot.Reason{Code: snapshot.ObjectUnreadable, What: "it is odd"}}
	elsewhere := broken
	elsewhere.Ref.Cluster = "cluster-1"
	require.NoError(t, complete(&snapshot.Input{Failures: []snapshot.Failure{elsewhere}}))
	require.ErrorContains(t, complete(&snapshot.Input{Failures: []snapshot.Failure{elsewhere, broken}}), "TrafficPolicy a/b: it cannot be exported: it is odd; correct or delete it")
}

// TestNamesStayInTheFolder: whatever an object is called.
func TestNamesStayInTheFolder(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	object := offline.Exported{Ref: snapshot.Ref{Kind: snapshot.Settings, Namespace: "../..", Name: "../../evil"}, Manifest: map[string]any{"kind": "Settings"}}
	require.Error(t, write(filepath.Join(dir, "fleet"), []offline.Exported{object}))
	entries, err := os.ReadDir(dir)
	require.NoError(t, err)
	require.Len(t, entries, 1)
	assert.NoFileExists(t, filepath.Join(filepath.Dir(dir), "evil.yaml"))
}
