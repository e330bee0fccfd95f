package demo

import (
	"bytes"
	"flag"
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
	var archive bytes.Buffer
	require.NoError(t, offline.WriteArchive(&archive, files))
	if *update {
		require.NoError(t, os.WriteFile("recorded/fleet.zip", archive.Bytes(), 0o644))
		return
	}
	assert.Equal(t, archive.Bytes(), fleet, "run `make golden`")
	read, err := offline.ReadArchive(fleet)
	require.NoError(t, err)
	syncs := map[string]snapshot.Sync{}
	for _, c := range read.Input.Clusters {
		syncs[c.Name] = c.Sync
	}
	assert.Equal(t, map[string]snapshot.Sync{"cluster-1": snapshot.Synced, "cluster-2": snapshot.Synced, "cluster-3": snapshot.Stale}, syncs)
}
