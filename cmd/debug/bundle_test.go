package debug

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/meshctl/meshctl/cmd/cmdutil"
	"github.com/meshctl/meshctl/engine/reading"
)

func TestBundleFlags(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct{ args, bad string }{
		"size":    {"--max-size 0", "--max-size must be greater than 0"},
		"lines":   {"--tail -1", "--tail must be greater than 0"},
		"since":   {"--since -1h", "--since must not be negative"},
		"timeout": {"--timeout 0s", "--timeout must be greater than 0"},
		"good":    {"-o x.zip --since 2h --max-size 7 --tail 9", ""},
	} {
		streams, _, _, _ := cmdutil.TestStreams()
		var got *BundleOptions
		cmd := newCmdBundle(cmdutil.NewFactory(streams), func(_ context.Context, o *BundleOptions) error {
			got = o
			return nil
		})
		cmd.SilenceErrors, cmd.SilenceUsage = true, true
		cmd.SetArgs(strings.Fields(c.args))
		err := cmd.Execute()
		if c.bad != "" {
			require.ErrorContains(t, err, c.bad, name)
			continue
		}
		require.NoError(t, err, name)
		assert.Equal(t, BundleOptions{File: "x.zip", Since: 2 * time.Hour, MaxSize: 7, Lines: 9}, BundleOptions{File: got.File, Since: got.Since, MaxSize: got.MaxSize, Lines: got.Lines})
	}
}

// TestTarget: an archive or a folder, which only its owner reads; nothing that is there is replaced in a folder.
func TestTarget(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	files := map[string][]byte{"README.txt": []byte("x"), ".support/a/b.yaml": []byte("y")}
	for _, name := range []string{filepath.Join(dir, "new") + "/", filepath.Join(dir, "bundle.zip")} {
		to, err := openTarget(name)
		require.NoError(t, err)
		size, err := to.write(files)
		require.NoError(t, err)
		assert.Positive(t, size)
		info, err := os.Stat(strings.TrimSuffix(name, "/"))
		require.NoError(t, err)
		assert.Zero(t, info.Mode().Perm()&0o077, "%s: others may not read it", name)
	}
	_, err := openTarget(filepath.Join(dir, "new"))
	require.ErrorContains(t, err, "the folder is not empty")
	_, err = openTarget(filepath.Join(dir, "no", "such", "bundle.zip"))
	require.Error(t, err)
}

// TestSnapshotLeavesRoom: a snapshot that is too large for a bundle is left out, and all of the room is for the rest.
func TestSnapshotLeavesRoom(t *testing.T) {
	t.Parallel()
	read, err := reading.Folder("../../testdata/translate/bookinfo/in")
	require.NoError(t, err)
	files, room, err := (&BundleOptions{MaxSize: 1}).snapshot(read, time.Now())
	require.NoError(t, err)
	assert.Contains(t, files, "management/management.yaml")
	assert.Less(t, room, int64(1<<20))
	assert.Greater(t, room, int64(1<<19))
	files, room, err = (&BundleOptions{MaxSize: 0}).snapshot(read, time.Now())
	require.NoError(t, err)
	assert.Nil(t, files)
	assert.Zero(t, room)
}
