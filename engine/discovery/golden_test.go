package discovery_test

import (
	"bytes"
	"flag"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/meshctl/meshctl/engine/discovery"
	"github.com/meshctl/meshctl/engine/offline"
	"github.com/meshctl/meshctl/engine/snapshot"
)

var update = flag.Bool("update", false, "rewrite golden files")

// cases is where every folder is a case: input/<cluster>/*.yaml goes in,
// expected.yaml must come out. With -update what comes out is written there.
const cases = "../../testdata/discovery"

func TestGolden(t *testing.T) {
	t.Parallel()
	entries, err := os.ReadDir(cases)
	require.NoError(t, err)
	require.NotEmpty(t, entries)
	for _, e := range entries {
		t.Run(e.Name(), func(t *testing.T) {
			t.Parallel()
			folder := filepath.Join(cases, e.Name())
			input, issues, err := offline.Load(os.DirFS(filepath.Join(folder, "input")))
			require.NoError(t, err)
			require.Empty(t, issues, "a document of the input was not used")
			var got bytes.Buffer
			for _, c := range input.Clusters {
				write(t, &got, discovery.Discover(c, discovery.Options{Namespace: input.Management.Namespace}))
			}
			expected := filepath.Join(folder, "expected.yaml")
			if *update {
				require.NoError(t, os.WriteFile(expected, got.Bytes(), 0o644))
			}
			want, err := os.ReadFile(expected)
			require.NoError(t, err)
			assert.Equal(t, string(want), got.String())
		})
	}
}

// write puts a result into one stream: the objects as they are stored, and the issues.
func write(t *testing.T, out *bytes.Buffer, d *snapshot.Discovered) {
	t.Helper()
	add := func(kind snapshot.Kind, o interface {
		GetName() string
		GetNamespace() string
		GetLabels() map[string]string
	}, spec any) {
		object := snapshot.Object{
			Ref:     snapshot.RefOf(kind, o),
			Content: &snapshot.Content{Labels: o.GetLabels(), Spec: spec},
		}
		data, err := object.YAML()
		require.NoError(t, err)
		out.WriteString("---\n")
		out.Write(data)
	}
	for _, o := range d.Meshes {
		add(snapshot.Mesh, o, o.Spec)
	}
	for _, o := range d.Workloads {
		add(snapshot.Workload, o, o.Spec)
	}
	for _, o := range d.Destinations {
		add(snapshot.Destination, o, o.Spec)
	}
	issues, err := snapshot.IssuesYAML(d.Issues)
	require.NoError(t, err)
	if len(issues) > 0 {
		out.WriteString("---\n")
		out.Write(issues)
	}
}
