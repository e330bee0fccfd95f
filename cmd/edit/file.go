package edit

import (
	"bytes"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/yaml"

	"github.com/meshctl/meshctl/cmd/cmdutil"
	"github.com/meshctl/meshctl/engine/offline"
	"github.com/meshctl/meshctl/engine/snapshot"
)

// document is the object to edit, and where it is written.
type document struct {
	object *unstructured.Unstructured
	// file is empty for an object of a cluster.
	file string
	// data is all that the file had, and start and end are the part with the object.
	data       []byte
	start, end int
}

// separator stands between the documents of a file.
const separator = "---"

// parts are where the documents of a file begin and end.
func parts(data []byte) (out [][2]int) {
	start, at := 0, 0
	for line := range bytes.Lines(data) {
		if text := strings.TrimRight(string(line), " \t\r\n"); text == separator || strings.HasPrefix(text, separator+" ") {
			out = append(out, [2]int{start, at})
			start = at + len(line)
		}
		at += len(line)
	}
	return append(out, [2]int{start, at})
}

// inFile finds the objects of a kind in a file.
func inFile(file string, kind snapshot.Kind) ([]*document, error) {
	data, err := offline.ReadFile(file)
	if err != nil {
		return nil, cmdutil.NotFoundErrorf("file: %w", err)
	}
	var out []*document
	for _, part := range parts(data) {
		object := &unstructured.Unstructured{}
		if err := yaml.Unmarshal(data[part[0]:part[1]], &object.Object); err != nil {
			return nil, fmt.Errorf("%s: invalid YAML: %w", file, err)
		}
		if is, ok := snapshot.KindOf(object.GroupVersionKind().GroupKind()); ok && is == kind {
			out = append(out, &document{object, file, data, part[0], part[1]})
		}
	}
	return out, nil
}

// inFolder finds an object of the management plane in the files of a folder; nil if it is in none, as in an archive or an overlay.
func inFolder(dir string, ref snapshot.Ref) *document {
	var found *document
	_ = filepath.WalkDir(filepath.Join(dir, offline.ManagementFolder), func(path string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() || !slices.Contains([]string{".yaml", ".yml"}, filepath.Ext(path)) {
			return nil //nolint:nilerr // the folder was read already, and said what cannot be
		}
		documents, err := inFile(path, ref.Kind)
		if err != nil {
			return nil //nolint:nilerr // as above
		}
		for _, d := range documents {
			if d.object.GetName() == ref.Name && d.object.GetNamespace() == ref.Namespace {
				found = d
				return fs.SkipAll
			}
		}
		return nil
	})
	return found
}

// save writes a manifest. Of the file that the object came from, only the part with the object changes; if somebody
// changed that file meanwhile, nothing is written.
func (d *document) save(file string, manifest []byte) error {
	if d.file == "" || filepath.Clean(file) != filepath.Clean(d.file) {
		if err := os.WriteFile(file, manifest, 0o644); err != nil {
			return fmt.Errorf("save: %w", err)
		}
		return nil
	}
	now, err := offline.ReadFile(d.file)
	if err != nil {
		return fmt.Errorf("save: %w", err)
	}
	if !bytes.Equal(now, d.data) {
		return fmt.Errorf("%s: somebody changed it meanwhile, and nothing was written; run the command again", d.file)
	}
	whole := slices.Concat(d.data[:d.start], leadingComment(d.data[d.start:d.end]), manifest, d.data[d.end:])
	mode := os.FileMode(0o644)
	if info, err := os.Stat(d.file); err == nil {
		mode = info.Mode().Perm()
	}
	if err := os.WriteFile(d.file, whole, mode); err != nil {
		return fmt.Errorf("save: %w", err)
	}
	return nil
}

// leadingComment are the comments and empty lines with which a document begins.
func leadingComment(data []byte) []byte {
	end := 0
	for line := range bytes.Lines(data) {
		if text := bytes.TrimSpace(line); len(text) > 0 && text[0] != '#' {
			break
		}
		end += len(line)
	}
	return data[:end]
}

// losesComments reports whether comments inside of the document would go away.
func (d *document) losesComments() bool {
	rest := d.data[d.start+len(leadingComment(d.data[d.start:d.end])) : d.end]
	return bytes.Contains(rest, []byte(" #")) || bytes.Contains(rest, []byte("\n#"))
}
