package main

import (
	"archive/tar"
	"archive/zip"
	"compress/gzip"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"time"
)

// entry is a file of an archive.
type entry struct {
	// name is its path in the archive, path that of its content.
	name, path string
	mode       fs.FileMode
}

// folder lists the files of a folder, ascending, below prefix.
func folder(dir, prefix string) ([]entry, error) {
	var entries []entry
	err := filepath.WalkDir(dir, func(path string, found fs.DirEntry, err error) error {
		if err != nil || found.IsDir() {
			return err
		}
		rel, err := filepath.Rel(dir, path)
		if err != nil {
			return err
		}
		entries = append(entries, entry{name: filepath.ToSlash(filepath.Join(prefix, rel)), path: path, mode: 0o644})
		return nil
	})
	if err != nil {
		return nil, fmt.Errorf("folder %s: %w", dir, err)
	}
	return entries, nil
}

// packer is a tar.gz or a zip.
type packer interface {
	// add begins a file of the given size; what is written next is its content.
	add(e entry, size int64) (io.Writer, error)
	Close() error
}

// pack writes an archive: a zip if windows, else a tar.gz. All files have one time and
// no owner, so that the same files give the same bytes.
func pack(path string, windows bool, at time.Time, entries []entry) (err error) {
	file, err := os.Create(path)
	if err != nil {
		return fmt.Errorf("archive: %w", err)
	}
	defer func() {
		if closed := file.Close(); err == nil && closed != nil {
			err = fmt.Errorf("archive %s: %w", path, closed)
		}
	}()
	var p packer
	if windows {
		p = &zipped{zip.NewWriter(file), at}
	} else {
		z := gzip.NewWriter(file)
		p = &tarred{tar.NewWriter(z), z, at}
	}
	for _, e := range entries {
		if err := copyInto(p, e); err != nil {
			return fmt.Errorf("archive %s: %s: %w", path, e.name, err)
		}
	}
	if err := p.Close(); err != nil {
		return fmt.Errorf("archive %s: %w", path, err)
	}
	return nil
}

func copyInto(p packer, e entry) error {
	content, err := os.Open(e.path)
	if err != nil {
		return err
	}
	defer func() { _ = content.Close() }()
	info, err := content.Stat()
	if err != nil {
		return err
	}
	w, err := p.add(e, info.Size())
	if err != nil {
		return err
	}
	_, err = io.Copy(w, content)
	return err
}

type tarred struct {
	tar *tar.Writer
	zip *gzip.Writer
	at  time.Time
}

func (t *tarred) add(e entry, size int64) (io.Writer, error) {
	return t.tar, t.tar.WriteHeader(&tar.Header{
		Typeflag: tar.TypeReg, Name: e.name, Mode: int64(e.mode.Perm()), Size: size, ModTime: t.at,
	})
}

func (t *tarred) Close() error {
	if err := t.tar.Close(); err != nil {
		return err
	}
	return t.zip.Close()
}

type zipped struct {
	*zip.Writer
	at time.Time
}

func (z *zipped) add(e entry, _ int64) (io.Writer, error) {
	header := &zip.FileHeader{Name: e.name, Method: zip.Deflate, Modified: z.at.UTC()}
	header.SetMode(e.mode)
	return z.CreateHeader(header)
}
