package cmdutil

import (
	"bytes"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"path/filepath"
)

// WriteFolder writes files of YAML, by their names with slashes, into a folder, which it makes if needed. Each begins
// with a comment that names the command, such as "translate". Files of an earlier run of the command that are not
// among files are removed; those of anybody else stay, and are never replaced.
func WriteFolder(dir, command string, files map[string][]byte) error {
	mark := []byte("# Written by meshctl " + command + "; the next run replaces it.\n")
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return fmt.Errorf("write to %s: %w", dir, err)
	}
	root, err := os.OpenRoot(dir)
	if err != nil {
		return fmt.Errorf("write to %s: %w", dir, err)
	}
	defer func() { _ = root.Close() }()
	for name := range files {
		if old, err := root.ReadFile(name); err == nil && !bytes.HasPrefix(old, mark) {
			return fmt.Errorf("write to %s: %s exists and was not written by this command; choose another folder or remove it", dir, name)
		}
	}
	for name, data := range files {
		if err := writeMarked(root, name, mark, data); err != nil {
			return fmt.Errorf("write to %s: %w", dir, err)
		}
	}
	if err := removeOrphans(root, mark, files); err != nil {
		return fmt.Errorf("tidy %s: %w", dir, err)
	}
	return nil
}

func writeMarked(root *os.Root, name string, mark, data []byte) error {
	if err := root.MkdirAll(path.Dir(name), 0o755); err != nil {
		return err //nolint:wrapcheck // it names the file
	}
	return root.WriteFile(name, append(bytes.Clone(mark), data...), 0o644) //nolint:wrapcheck // it names the file
}

// removeOrphans removes the files that bear the mark and are not among files.
func removeOrphans(root *os.Root, mark []byte, files map[string][]byte) error {
	return fs.WalkDir(root.FS(), ".", func(name string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() || path.Ext(name) != ".yaml" {
			return err
		}
		if _, wanted := files[name]; wanted {
			return nil
		}
		data, err := root.ReadFile(name)
		if err != nil || !bytes.HasPrefix(data, mark) {
			return err //nolint:wrapcheck // it names the file
		}
		return root.Remove(name) //nolint:wrapcheck // it names the file
	})
}

// WriteFile writes a file that only its owner can read. It writes beside it first, so that a file that is there stays whole if that fails.
// It returns the size in bytes.
func WriteFile(file string, write func(io.Writer) error) (size int64, err error) {
	temporary, err := os.CreateTemp(filepath.Dir(file), ".meshctl-*")
	if err != nil {
		return 0, err //nolint:wrapcheck // it names the file
	}
	defer func() { _ = os.Remove(temporary.Name()) }() // nothing is there any more if all went well
	if err := write(temporary); err != nil {
		_ = temporary.Close()
		return 0, err
	}
	info, err := temporary.Stat()
	if err != nil {
		_ = temporary.Close()
		return 0, err //nolint:wrapcheck // it names the file
	}
	if err := temporary.Close(); err != nil {
		return 0, err //nolint:wrapcheck // it names the file
	}
	return info.Size(), os.Rename(temporary.Name(), file) //nolint:wrapcheck // it names the file
}
