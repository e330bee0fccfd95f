package offline_test

import (
	"archive/zip"
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/meshctl/meshctl/engine/offline"
)

// archiveOf is an archive of empty files of which only the headers matter.
func archiveOf(t testing.TB, headers ...zip.FileHeader) []byte {
	t.Helper()
	var out bytes.Buffer
	w := zip.NewWriter(&out)
	for i := range headers {
		_, err := w.CreateRaw(&headers[i])
		require.NoError(t, err)
	}
	require.NoError(t, w.Close())
	return out.Bytes()
}

func TestSizesThatAnArchiveDeclaresAreNotBelieved(t *testing.T) {
	t.Parallel()
	const large = 1 << 62
	for name, headers := range map[string][]zip.FileHeader{
		"their sum overflows": {
			{Name: "c/a.yaml", UncompressedSize64: large},
			{Name: "c/b.yaml", UncompressedSize64: -large & (1<<64 - 1)},
		},
		"one is larger than any slice": {{Name: "c/a.yaml", UncompressedSize64: 1<<64 - 1}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			_, err := offline.ReadArchive(archiveOf(t, headers...))
			require.ErrorContains(t, err, "c/a.yaml")
		})
	}
}

func TestNamesInAnArchiveAreBounded(t *testing.T) {
	t.Parallel()
	_, err := offline.ReadArchive(archiveOf(t, zip.FileHeader{Name: strings.Repeat("a/", 30_000) + "a.yaml"}))
	require.ErrorContains(t, err, "has a name of 60006 bytes; at most 512 are read")
}

func TestOnlyRegularFilesOfAFolderAreRead(t *testing.T) {
	t.Parallel()
	for name, make := range map[string]func(string) error{
		"a device without end":    func(at string) error { return os.Symlink("/dev/zero", at) },
		"a pipe that none writes": func(at string) error { return syscall.Mkfifo(at, 0o600) },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			dir := t.TempDir()
			require.NoError(t, os.Mkdir(filepath.Join(dir, "west"), 0o700))
			require.NoError(t, make(filepath.Join(dir, "west", "a.yaml")))
			_, _, err := offline.Load(offline.Dir(dir))
			require.ErrorContains(t, err, "west/a.yaml: cannot be read: it is no regular file; replace it by one")
		})
	}
}

func TestALinkToARegularFileIsRead(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	require.NoError(t, os.Mkdir(filepath.Join(dir, "west"), 0o700))
	file := filepath.Join(dir, "..data")
	require.NoError(t, os.WriteFile(file, []byte("{apiVersion: v1, kind: Namespace, metadata: {name: a}}"), 0o600))
	require.NoError(t, os.Symlink(file, filepath.Join(dir, "west", "a.yaml")))
	in, _, err := offline.Load(offline.Dir(dir))
	require.NoError(t, err)
	assert.Len(t, in.Clusters[0].Namespaces, 1)
}
