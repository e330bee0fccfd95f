package files_test

import (
	"io/fs"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/meshctl/meshctl/demo/files"
)

func TestWriteReplacesTheFile(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	path := filepath.Join(dir, "file")
	require.NoError(t, files.Write(path, []byte("one")))
	require.NoError(t, files.Write(path, []byte("two")))
	data, err := os.ReadFile(path)
	require.NoError(t, err)
	assert.Equal(t, "two", string(data))
	info, err := os.Stat(path)
	require.NoError(t, err)
	assert.Equal(t, fs.FileMode(0o600), info.Mode().Perm())
	entries, err := os.ReadDir(dir)
	require.NoError(t, err)
	assert.Len(t, entries, 1, "no temporary file is left")
	require.ErrorIs(t, files.Write(filepath.Join(dir, "none", "file"), nil), fs.ErrNotExist)
}

func TestState(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "state.json")
	var read map[string]int
	require.ErrorIs(t, files.ReadState(path, &read), fs.ErrNotExist)
	require.NoError(t, files.WriteState(path, map[string]int{"a": 1}))
	require.NoError(t, files.ReadState(path, &read))
	assert.Equal(t, map[string]int{"a": 1}, read)

	require.NoError(t, os.WriteFile(path, []byte("{"), 0o600))
	err := files.ReadState(path, &read)
	require.ErrorContains(t, err, "the file is damaged")
	assert.NotErrorIs(t, err, fs.ErrNotExist)
}
