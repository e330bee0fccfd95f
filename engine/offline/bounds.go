package offline

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"sync/atomic"
)

// The bounds of what is read from files that somebody else may have made.
const (
	// maxFile bounds one file, in bytes.
	maxFile = 256 << 20
	// maxTotal bounds the files of a folder or an archive together, in bytes.
	maxTotal = 1 << 30
	// maxFiles bounds their number.
	maxFiles = 100_000
	// maxName bounds the names in an archive, in bytes: package zip makes a folder of each step.
	maxName = 512
)

// tooLargeError is about a file, or files, with more bytes than are read.
type tooLargeError struct {
	of    string
	bytes int64
}

func (e *tooLargeError) Error() string {
	return fmt.Sprintf("%s more than %d MiB, which is the most that is read; give a smaller one", e.of, e.bytes>>20)
}

// ReadAll reads at most 256 MiB; more is an error. Where it ends early, the error is the reader's.
func ReadAll(r io.Reader) ([]byte, error) {
	return readAtMost(r, &tooLargeError{"it has", maxFile})
}

// ReadFile is ReadAll for a file of the local file system, which may be a pipe. Its errors begin with
// what was tried, like those of package os.
func ReadFile(name string) ([]byte, error) {
	file, err := os.Open(name)
	if err != nil {
		return nil, err //nolint:wrapcheck // it names the file
	}
	defer func() { _ = file.Close() }()
	data, err := ReadAll(file)
	if tooLarge := (*tooLargeError)(nil); errors.As(err, &tooLarge) {
		return nil, fmt.Errorf("%s: %w", name, err)
	}
	return data, err
}

func readAtMost(r io.Reader, bound *tooLargeError) ([]byte, error) {
	data, err := io.ReadAll(io.LimitReader(r, bound.bytes+1))
	if err == nil && int64(len(data)) > bound.bytes {
		return nil, bound
	}
	return data, err //nolint:wrapcheck // the caller names the file
}

// Bounded is a file system of which only so much is read: regular files, so many, and with so many
// bytes, each and together. What an archive says about sizes does not count, only what comes out of it.
func Bounded(fsys fs.FS) fs.FS { return &boundedFS{FS: fsys, file: maxFile, total: maxTotal} }

type boundedFS struct {
	fs.FS
	file, total  int64
	bytes, files atomic.Int64
}

var errNotRegular = errors.New("it is no regular file; replace it by one")

// ReadFile implements fs.ReadFileFS.
func (b *boundedFS) ReadFile(name string) ([]byte, error) {
	if b.files.Add(1) > maxFiles {
		return nil, fmt.Errorf("there are more than %d files, which is the most that is read; give fewer", maxFiles)
	}
	// A pipe would be waited for when it is opened.
	info, err := b.Stat(name)
	switch {
	case err != nil:
		return nil, err
	case !info.Mode().IsRegular():
		return nil, errNotRegular
	}
	file, err := b.Open(name)
	if err != nil {
		return nil, err //nolint:wrapcheck // it is that of the file system
	}
	defer func() { _ = file.Close() }()
	return readAtMost(counted{file, b}, &tooLargeError{"it has", b.file})
}

// Stat implements fs.StatFS.
func (b *boundedFS) Stat(name string) (fs.FileInfo, error) { return fs.Stat(b.FS, name) }

// ReadDir implements fs.ReadDirFS.
func (b *boundedFS) ReadDir(name string) ([]fs.DirEntry, error) { return fs.ReadDir(b.FS, name) }

// counted counts what is read of a file to what is read of all.
type counted struct {
	io.Reader
	all *boundedFS
}

func (c counted) Read(p []byte) (int, error) {
	n, err := c.Reader.Read(p)
	if c.all.bytes.Add(int64(n)) > c.all.total {
		return 0, &tooLargeError{"the files have together", c.all.total}
	}
	return n, err //nolint:wrapcheck // a reader
}
