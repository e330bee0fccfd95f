package offline_test

import (
	"archive/zip"
	"bytes"
	"regexp"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/stretchr/testify/require"

	"github.com/meshctl/meshctl/engine/offline"
)

// placed begins each line of what Load complains of.
var placed = regexp.MustCompile(`^management/policies\.yaml:\d+: document \d+: `)

// FuzzLoadPolicies: any text in the place of policies is read or refused; what
// is refused is named by file, line and document.
func FuzzLoadPolicies(f *testing.F) {
	f.Fuzz(func(t *testing.T, data string) {
		files := fstest.MapFS{"management/policies.yaml": &fstest.MapFile{Data: []byte(data)}}
		in, _, err := offline.Load(files)
		if err != nil {
			first, _, _ := strings.Cut(err.Error(), "\n")
			require.Regexp(t, placed, first)
			return
		}
		again, _, err := offline.Load(files)
		require.NoError(t, err)
		require.Equal(t, in, again)
	})
}

// FuzzReadArchive: any bytes are read or refused.
func FuzzReadArchive(f *testing.F) {
	files := map[string][]byte{
		"management/management.yaml": []byte("{apiVersion: offline/v1, kind: Management}"),
		"west/namespace.json":        []byte(`{"apiVersion":"v1","kind":"Namespace","metadata":{"name":"a"}}`),
	}
	var archive bytes.Buffer
	require.NoError(f, offline.WriteArchive(&archive, files))
	f.Add(archive.Bytes())
	f.Add(archiveOf(f, zip.FileHeader{Name: "west/a.yaml", UncompressedSize64: 1 << 62}, zip.FileHeader{Name: "west/b.yaml", UncompressedSize64: 3 << 62}))
	f.Add(archiveOf(f, zip.FileHeader{Name: "west/../../a.yaml"}, zip.FileHeader{Name: "/west"}, zip.FileHeader{Name: "west"}))
	f.Add(archiveOf(f, zip.FileHeader{Name: "README.txt"}, zip.FileHeader{Name: ".support/../west/a.yaml"}, zip.FileHeader{Name: ".support/management/pods.yaml"}))
	f.Fuzz(func(t *testing.T, data []byte) {
		read, err := offline.ReadArchive(data)
		if err == nil {
			require.NotNil(t, read.Input)
		}
	})
}
