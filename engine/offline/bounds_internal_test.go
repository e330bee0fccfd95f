package offline

import (
	"archive/zip"
	"bytes"
	"context"
	"fmt"
	"io"
	"io/fs"
	"os"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// TestWhatComesOutOfAnArchiveIsBounded: each file, and all of them together.
func TestWhatComesOutOfAnArchiveIsBounded(t *testing.T) {
	t.Parallel()
	const mib = 1 << 20
	var out bytes.Buffer
	w := zip.NewWriter(&out)
	for i, size := range []int{mib, mib + 1, mib, mib} {
		file, err := w.Create(fmt.Sprintf("%d.yaml", i))
		require.NoError(t, err)
		_, err = file.Write(make([]byte, size))
		require.NoError(t, err)
	}
	require.NoError(t, w.Close())
	assert.Less(t, out.Len(), mib/10, "it is small until it is unpacked")
	archive, err := zip.NewReader(bytes.NewReader(out.Bytes()), int64(out.Len()))
	require.NoError(t, err)
	bounded := &boundedFS{FS: archive, file: mib, total: 7 * mib / 2}
	data, err := fs.ReadFile(bounded, "0.yaml")
	require.NoError(t, err)
	assert.Len(t, data, mib)
	_, err = fs.ReadFile(bounded, "1.yaml")
	require.EqualError(t, err, "it has more than 1 MiB, which is the most that is read; give a smaller one")
	_, err = fs.ReadFile(bounded, "2.yaml")
	require.NoError(t, err)
	_, err = fs.ReadFile(bounded, "3.yaml")
	require.EqualError(t, err, "the files have together more than 3 MiB, which is the most that is read; give a smaller one")
	bounded.files.Store(maxFiles)
	_, err = fs.ReadFile(bounded, "0.yaml")
	require.EqualError(t, err, "there are more than 100000 files, which is the most that is read; give fewer")
}

// endless is input that does not end until the test does.
type endless struct{ context.Context }

func (e endless) Read(p []byte) (int, error) { return len(p), e.Err() }

func TestInputIsBounded(t *testing.T) {
	t.Parallel()
	bound := &tooLargeError{"it has", 1 << 20}
	_, err := readAtMost(endless{t.Context()}, bound)
	require.ErrorIs(t, err, bound)
	data, err := readAtMost(io.LimitReader(endless{t.Context()}, bound.bytes), bound)
	require.NoError(t, err)
	assert.Len(t, data, 1<<20)
	_, err = ReadFile("absent")
	require.ErrorIs(t, err, os.ErrNotExist)
}
