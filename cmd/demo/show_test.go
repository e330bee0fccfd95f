package demo

import (
	"archive/zip"
	"bytes"
	"flag"
	"io"
	"maps"
	"os"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/meshctl/meshctl/engine"
	"github.com/meshctl/meshctl/engine/offline"
	"github.com/meshctl/meshctl/engine/snapshot"
)

var update = flag.Bool("update", false, "rewrite the recording")

// TestGoldenFleet: the recording is that of the case in testdata, whose translation and answers are golden.
func TestGoldenFleet(t *testing.T) {
	t.Parallel()
	in, _, err := offline.Load(offline.Dir("../../testdata/translate/fleet/in"))
	require.NoError(t, err)
	files, err := offline.Save(&offline.Snapshot{Input: in, Recorded: time.Date(2026, 1, 1, 12, 0, 0, 0, time.UTC)}, engine.Translate(in).Output)
	require.NoError(t, err)
	// Files are compared, as another version of Go may compress them in another way.
	if *update && !maps.EqualFunc(files, unpacked(t), bytes.Equal) {
		var archive bytes.Buffer
		require.NoError(t, offline.WriteArchive(&archive, files))
		require.NoError(t, os.WriteFile("recorded/fleet.zip", archive.Bytes(), 0o644))
		return
	}
	assert.True(t, maps.EqualFunc(files, unpacked(t), bytes.Equal), "run `make golden`")
	read, err := offline.ReadArchive(fleet)
	require.NoError(t, err)
	syncs := map[string]snapshot.Sync{}
	for _, c := range read.Input.Clusters {
		syncs[c.Name] = c.Sync
	}
	assert.Equal(t, map[string]snapshot.Sync{"cluster-1": snapshot.Synced, "cluster-2": snapshot.Synced, "cluster-3": snapshot.Stale}, syncs)
}

// unpacked are the files of the recording.
func unpacked(t *testing.T) map[string][]byte {
	t.Helper()
	archive, err := zip.NewReader(bytes.NewReader(fleet), int64(len(fleet)))
	require.NoError(t, err)
	out := map[string][]byte{}
	for _, file := range archive.File {
		r, err := file.Open()
		require.NoError(t, err)
		out[file.Name], err = io.ReadAll(r)
		require.NoError(t, err)
		require.NoError(t, r.Close())
	}
	return out
}
