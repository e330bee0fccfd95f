package offline_test

import (
	"flag"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/google/go-cmp/cmp"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/meshctl/meshctl/engine"
	"github.com/meshctl/meshctl/engine/offline"
	"github.com/meshctl/meshctl/engine/snapshot"
)

var update = flag.Bool("update", false, "rewrite the golden files")

// cases has a folder for each case: in/ is what Load reads, out/ the objects
// that follow from it, beside them statuses.yaml and issues.yaml. A file that
// would be empty does not exist.
const cases = "../../testdata/translate"

// TestGolden translates every case, compares all that comes out with the files,
// and checks that the order in which files are read changes nothing.
func TestGolden(t *testing.T) {
	t.Parallel()
	entries, err := os.ReadDir(cases)
	require.NoError(t, err)
	require.NotEmpty(t, entries)
	for _, entry := range entries {
		t.Run(entry.Name(), func(t *testing.T) {
			t.Parallel()
			dir := filepath.Join(cases, entry.Name())
			got := translate(t, os.DirFS(filepath.Join(dir, "in")))
			if *update {
				write(t, dir, got)
			}
			assert.Equal(t, slices.Sorted(maps.Keys(read(t, dir))), slices.Sorted(maps.Keys(got)), "the files of the case; run make golden")
			for name, want := range read(t, dir) {
				if diff := cmp.Diff(strings.Split(want, "\n"), strings.Split(got[name], "\n")); diff != "" {
					t.Errorf("%s (-want +got); run make golden if the change is meant:\n%s", name, diff)
				}
			}
			in := os.DirFS(filepath.Join(dir, "in"))
			assert.Equal(t, got, translate(t, in), "the same input must give the same bytes")
			assert.Equal(t, got, translate(t, reversed(t, in)), "the order of what is read must not matter")
		})
	}
}

// reversed has every document of a folder in a file of its own, so named that
// all are read in the opposite order.
func reversed(t *testing.T, in fs.FS) fs.FS {
	t.Helper()
	out := fstest.MapFS{}
	n := 1_000_000
	err := fs.WalkDir(in, ".", func(name string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() {
			return err
		}
		data, err := fs.ReadFile(in, name)
		for _, document := range strings.Split(string(data), "\n---\n") {
			n--
			out[path.Join(path.Dir(name), fmt.Sprintf("%06d.yaml", n))] = &fstest.MapFile{Data: []byte(document)}
		}
		return err
	})
	require.NoError(t, err)
	return out
}

// translate gives the golden files of an input by name.
func translate(t *testing.T, in fs.FS) map[string]string {
	t.Helper()
	input, issues, err := offline.Load(in)
	require.NoError(t, err)
	output := engine.Translate(input).Output

	files := map[string]string{}
	put := func(name string, data []byte, err error) {
		require.NoError(t, err)
		if len(data) > 0 {
			files[name] = string(data)
		}
	}
	objects, err := offline.Files(output)
	require.NoError(t, err)
	for name, data := range objects {
		put("out/"+name, data, nil)
	}
	data, err := snapshot.StatusesYAML(output.Statuses.Slice())
	put("statuses.yaml", data, err)
	issues = append(issues, output.Issues...)
	slices.SortFunc(issues, snapshot.Issue.Compare)
	data, err = snapshot.IssuesYAML(issues)
	put("issues.yaml", data, err)
	return files
}

// read gives the golden files of a case by name.
func read(t *testing.T, dir string) map[string]string {
	t.Helper()
	files := map[string]string{}
	root := os.DirFS(dir)
	err := fs.WalkDir(root, ".", func(name string, entry fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case entry.IsDir() && (name == "in" || name == "describe"):
			return fs.SkipDir
		case entry.IsDir() || filepath.Ext(name) != ".yaml":
			return nil
		}
		data, err := fs.ReadFile(root, name)
		files[name] = string(data)
		return err
	})
	require.NoError(t, err)
	return files
}

// write replaces the golden files of a case and removes those without a successor.
func write(t *testing.T, dir string, files map[string]string) {
	t.Helper()
	for name := range read(t, dir) {
		if _, stays := files[name]; !stays {
			require.NoError(t, os.Remove(filepath.Join(dir, filepath.FromSlash(name))))
		}
	}
	for name, content := range files {
		path := filepath.Join(dir, filepath.FromSlash(name))
		require.NoError(t, os.MkdirAll(filepath.Dir(path), 0o755))
		require.NoError(t, os.WriteFile(path, []byte(content), 0o644))
	}
}
