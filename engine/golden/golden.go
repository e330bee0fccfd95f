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
	if *update {
		write(t, file, content)
	}
	old := map[string]string{}
	if data, err := os.ReadFile(file); err == nil {
		old[file] = string(data)
	}
	compare(t, old, map[string]string{file: content})
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

// Section fails the test if the text between the lines begin and end of a file
// is not want. With -update it writes want there first.
func Section(t testing.TB, file, begin, end, want string) {
	t.Helper()
	text, err := os.ReadFile(file)
	require.NoError(t, err)
	before, rest, ok := strings.Cut(string(text), begin)
	require.True(t, ok, "%s: the line %q is missing", file, begin)
	_, after, ok := strings.Cut(rest, end)
	require.True(t, ok, "%s: the line %q is missing", file, end)
	File(t, file, before+begin+want+end+after)
}

func check(t testing.TB, dir string, files map[string]string, belongs func(name string) bool) {
	t.Helper()
	compare(t, read(t, dir, belongs), files)
}

// compare reports how the files that exist differ from those that should.
func compare(t testing.TB, old, files map[string]string) {
	t.Helper()
	for name, want := range old {
		got, produced := files[name]
		switch {
		case !produced:
			t.Errorf("%s: nothing produces this file any more; run make golden if that is intended", name)
		case got != want:
			t.Errorf("%s (-want +got); run make golden if the change is intended:\n%s", name,
				cmp.Diff(strings.Split(want, "\n"), strings.Split(got, "\n")))
		}
	}
	for name, got := range files {
		if _, exists := old[name]; !exists {
			t.Errorf("%s does not exist; run make golden if it is intended:\n%s", name, got)
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
		write(t, filepath.Join(dir, filepath.FromSlash(name)), content)
	}
}

func write(t testing.TB, file, content string) {
	t.Helper()
	require.NoError(t, os.MkdirAll(filepath.Dir(file), 0o755))
	require.NoError(t, os.WriteFile(file, []byte(content), 0o644)) //nolint:gosec // tests name the file
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
