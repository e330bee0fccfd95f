package offline_test

import (
	"bytes"
	"io/fs"
	"maps"
	"math/rand"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"sigs.k8s.io/yaml"

	"github.com/meshctl/meshctl/engine/enginetest"
	"github.com/meshctl/meshctl/engine/golden"
	"github.com/meshctl/meshctl/engine/offline"
	"github.com/meshctl/meshctl/engine/snapshot"
)

// TestGolden translates every case and compares everything that follows from it
// with what the case expects; the package comment says what a case consists of.
// Then it checks that the order of what is read does not matter. In which order
// objects arrive from an API server is tested in engine/watch.
func TestGolden(t *testing.T) {
	t.Parallel()
	inputs, err := filepath.Glob("../../testdata/*/*/in")
	require.NoError(t, err)
	require.NotEmpty(t, inputs)
	for _, in := range inputs {
		dir := filepath.Dir(in)
		t.Run(filepath.Base(filepath.Dir(dir))+"/"+filepath.Base(dir), func(t *testing.T) {
			t.Parallel()
			input, issues, err := offline.Load(offline.Dir(in))
			require.NoError(t, err)
			got := resultsOf(t, input, issues)
			base, proven := provenElsewhere(t, dir)
			golden.Files(t, dir, difference(t, got, base, proven), func(name string) bool {
				return !strings.HasPrefix(name, "in/") && !strings.HasPrefix(name, "describe/") && !strings.HasPrefix(name, "trust/") && name != whyName
			})
			assert.Equal(t, got, translate(t, offline.Dir(in)), "the same input must give the same bytes")
			assert.Equal(t, got, translate(t, backwards{offline.Dir(in)}), "the order of folders, files and documents must not matter")
			reordered, err := enginetest.Reordered(input, rand.New(rand.NewSource(1)).Shuffle)
			require.NoError(t, err)
			assert.Equal(t, got, resultsOf(t, reordered, issues), "the order of lists that have none must not matter")
		})
	}
}

// baseName is the file that names the case on which a case is based.
const baseName = "base.yaml"

type baseFile struct {
	// Base is the folder of the other case, relative to this one.
	Base string `json:"base,omitempty"`
	// Without are the keys of the results that the other case has, and this one has not.
	Without []string `json:"without,omitempty"`
}

func readBase(t *testing.T, dir string) baseFile {
	t.Helper()
	data, err := os.ReadFile(filepath.Join(dir, baseName))
	if os.IsNotExist(err) {
		return baseFile{}
	}
	require.NoError(t, err)
	var base baseFile
	require.NoError(t, yaml.UnmarshalStrict(data, &base), "%s/%s", dir, baseName)
	return base
}

// provenElsewhere are the results that the case in dir need not repeat, by key:
// those of its clusters alone, and with a base what the base says beyond that.
func provenElsewhere(t *testing.T, dir string) (base string, proven map[string]result) {
	t.Helper()
	proven = translateClusters(t, offline.Dir(filepath.Join(dir, "in")))
	base = readBase(t, dir).Base
	if base == "" {
		return base, proven
	}
	other := filepath.Join(dir, base)
	require.Empty(t, readBase(t, other).Base, "%s has a base; name that one", other)
	in := offline.Dir(filepath.Join(other, "in"))
	fromClusters := translateClusters(t, in)
	for _, r := range translate(t, in) {
		if fromClusters[r.key] != r {
			proven[r.key] = r
		}
		delete(fromClusters, r.key)
	}
	for key := range fromClusters {
		delete(proven, key)
	}
	return base, proven
}

// translateClusters gives the objects and statuses that follow from the clusters
// of an input alone, by key. An input without a management plane has to prove
// these itself.
func translateClusters(t *testing.T, in fs.FS) map[string]result {
	t.Helper()
	results := map[string]result{}
	if _, err := fs.Stat(in, offline.ManagementFolder); err != nil {
		return results
	}
	input, _, err := offline.Load(in)
	require.NoError(t, err)
	input.Management = &snapshot.Management{Namespace: input.Management.Namespace}
	input.Failures = nil
	for _, r := range resultsOf(t, input, nil) {
		if r.file != issuesFile {
			results[r.key] = r
		}
	}
	return results
}

// difference gives the golden files of a case by name.
func difference(t *testing.T, got []result, base string, proven map[string]result) map[string]string {
	t.Helper()
	files := map[string]string{}
	missing := maps.Clone(proven)
	for _, r := range got {
		delete(missing, r.key)
		if proven[r.key] == r {
			continue
		}
		if files[r.file] != "" {
			files[r.file] += r.separator
		}
		files[r.file] += r.text
	}
	if base != "" || len(missing) > 0 {
		data, err := yaml.Marshal(baseFile{Base: base, Without: slices.Sorted(maps.Keys(missing))})
		require.NoError(t, err)
		files[baseName] = compact(t, data)
	}
	return files
}

// backwards reads folders, and the documents of files, in the opposite order.
type backwards struct{ fs.FS }

func (b backwards) ReadDir(name string) ([]fs.DirEntry, error) {
	entries, err := fs.ReadDir(b.FS, name)
	slices.Reverse(entries)
	return entries, err
}

func (b backwards) ReadFile(name string) ([]byte, error) {
	data, err := fs.ReadFile(b.FS, name)
	documents := bytes.Split(data, []byte("\n---\n"))
	slices.Reverse(documents)
	return bytes.Join(documents, []byte("\n---\n")), err
}
