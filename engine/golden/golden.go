// Package golden compares what tests produce with golden files, and rewrites
// these files if the tests run with -update, as `make golden` runs them.
package golden

import (
	"errors"
	"flag"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/stretchr/testify/require"
)

var update = flag.Bool("update", false, "rewrite the golden files")

// Update reports whether the golden files are to be rewritten.
func Update() bool { return *update }

// File fails the test if the file does not exist or has other content. With
// -update it writes the file first.
func File(t testing.TB, file, content string) {
	t.Helper()
	Files(t, filepath.Dir(file), map[string]string{filepath.Base(file): content}, func(name string) bool {
		return name == filepath.Base(file)
	})
}

// Files fails the test if the files below dir for which belongs is true are not
// exactly those given. Names use slashes and are relative to dir. With -update
// it writes the files first, and removes those that are not given.
func Files(t testing.TB, dir string, files map[string]string, belongs func(name string) bool) {
	t.Helper()
	if *update {
		rewrite(t, dir, files, belongs)
	}
	check(t, dir, files, belongs)
}

func check(t testing.TB, dir string, files map[string]string, belongs func(name string) bool) {
	t.Helper()
	old := read(t, dir, belongs)
	for name, want := range old {
		got, produced := files[name]
		switch {
		case !produced:
			t.Errorf("%s/%s: nothing produces this file any more; run make golden if that is intended", dir, name)
		case got != want:
			t.Errorf("%s/%s (-want +got); run make golden if the change is intended:\n%s", dir, name,
				cmp.Diff(strings.Split(want, "\n"), strings.Split(got, "\n")))
		}
	}
	for name, got := range files {
		if _, exists := old[name]; !exists {
			t.Errorf("%s/%s does not exist; run make golden if it is intended:\n%s", dir, name, got)
		}
	}
}

func rewrite(t testing.TB, dir string, files map[string]string, belongs func(name string) bool) {
	t.Helper()
	for name := range read(t, dir, belongs) {
		if _, stays := files[name]; !stays {
			remove(t, dir, name)
		}
	}
	for name, content := range files {
		file := filepath.Join(dir, filepath.FromSlash(name))
		require.NoError(t, os.MkdirAll(filepath.Dir(file), 0o755))
		require.NoError(t, os.WriteFile(file, []byte(content), 0o644)) //nolint:gosec // tests name the file
	}
}

// remove also removes the folders that become empty.
func remove(t testing.TB, dir, name string) {
	t.Helper()
	require.NoError(t, os.Remove(filepath.Join(dir, filepath.FromSlash(name))))
	for folder := path.Dir(name); folder != "."; folder = path.Dir(folder) {
		if os.Remove(filepath.Join(dir, filepath.FromSlash(folder))) != nil {
			return // it has other files
		}
	}
}

// read gives the content of the files below dir that belong.
func read(t testing.TB, dir string, belongs func(name string) bool) map[string]string {
	t.Helper()
	files := map[string]string{}
	root := os.DirFS(dir)
	err := fs.WalkDir(root, ".", func(name string, entry fs.DirEntry, err error) error {
		switch {
		case name == "." && errors.Is(err, fs.ErrNotExist):
			return nil // a folder to be written
		case err != nil || entry.IsDir() || !belongs(name):
			return err
		}
		data, err := fs.ReadFile(root, name)
		files[name] = string(data)
		return err
	})
	require.NoError(t, err)
	return files
}
