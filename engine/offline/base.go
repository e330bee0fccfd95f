package offline

import (
	"encoding/json"
	"fmt"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"strconv"
	"strings"

	jsonpatch "gopkg.in/evanphx/json-patch.v4"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/meshctl/meshctl/engine/snapshot"
)

// Dir is the folder dir of the local file system. Unlike os.DirFS, it also opens
// bases outside of that folder.
func Dir(dir string) fs.FS { return dirFS(dir) }

type dirFS string

func (d dirFS) Open(name string) (fs.File, error) {
	return os.Open(filepath.Join(string(d), filepath.FromSlash(name)))
}

// Stat implements fs.StatFS: a pipe must not be opened for it.
func (d dirFS) Stat(name string) (fs.FileInfo, error) {
	return os.Stat(filepath.Join(string(d), filepath.FromSlash(name)))
}

// overlay names the bases of a folder.
type overlay struct {
	// Bases are files or folders, relative to the folder.
	Bases []string `json:"bases"`
	// Without are the objects of the bases to leave out.
	Without []snapshot.Ref `json:"without"`

	// at is the document that names them.
	at place
}

func (o overlay) empty() bool { return len(o.Bases)+len(o.Without) == 0 }

// objectKey names an object of a folder.
type objectKey struct {
	kind            schema.GroupKind
	namespace, name string
}

// key is false for documents without a name.
func (d document) key() (objectKey, bool) {
	var head struct {
		Metadata struct{ Name, Namespace string }
	}
	if json.Unmarshal(d.json, &head) != nil || head.Metadata.Name == "" {
		return objectKey{}, false
	}
	return objectKey{d.gvk.GroupKind(), head.Metadata.Namespace, head.Metadata.Name}, true
}

// apply adds the documents of the bases to those of a folder; an object that a
// base has too is merged into it.
func (o overlay) apply(fsys fs.FS, folder string, own []document) ([]document, []error) {
	if o.empty() {
		return own, nil
	}
	below, order, errs := o.read(fsys, folder)
	for i, ref := range o.Without {
		key := objectKey{ref.Kind.Info().GroupKind(), ref.Namespace, ref.Name}
		if _, found := below[key]; !found {
			errs = append(errs, o.at.errorf([]string{"spec", "without", strconv.Itoa(i)}, "no base has the %s; remove this line", ref))
		}
		delete(below, key)
	}
	for i, doc := range own {
		key, named := doc.key()
		base, found := below[key]
		if !named || !found {
			continue
		}
		merged, err := jsonpatch.MergePatch(base.json, doc.json)
		if err != nil {
			errs = append(errs, doc.at.errorf(nil, "cannot be merged into %s:%d: %w", base.at.file, base.at.first, err))
		}
		own[i].json = merged
		delete(below, key)
	}
	for _, key := range order {
		if doc, left := below[key]; left {
			own = append(own, doc)
		}
	}
	return own, errs
}

// read gives the documents of all bases, and the order in which they were read.
func (o overlay) read(fsys fs.FS, folder string) (all map[objectKey]document, order []objectKey, errs []error) {
	all = map[objectKey]document{}
	for i, base := range o.Bases {
		documents, bad := readDocuments(fsys, path.Join(folder, base))
		if errs = append(errs, bad...); len(documents) == 0 && len(bad) == 0 {
			errs = append(errs, o.at.errorf([]string{"spec", "bases", strconv.Itoa(i)}, "base %s has no manifests; correct the path, which is relative to the folder %s", base, folder))
		}
		for _, doc := range documents {
			key, named := doc.key()
			first, twice := all[key]
			switch {
			case doc.gvk.GroupVersion() == selfGroup:
				errs = append(errs, doc.at.errorf(nil, "a base cannot have bases, nor describe its folder; name the files beside this one as bases"))
			case !named:
				errs = append(errs, doc.at.errorf([]string{"metadata"}, "%s has no name; add metadata.name", doc.gvk.Kind))
			case twice:
				errs = append(errs, doc.at.errorf([]string{"metadata"}, "%s %s is in the base %s already; name only one of them", doc.gvk.Kind, key.name, first.at.file))
			default:
				all[key] = doc
				order = append(order, key)
			}
		}
	}
	return all, order, errs
}

// readDocuments reads all files of a folder, or one file, in the order of their names.
func readDocuments(fsys fs.FS, root string) ([]document, []error) {
	var (
		documents []document
		errs      []error
	)
	walk := func(name string, entry fs.DirEntry, err error) error {
		switch {
		case err != nil:
			errs = append(errs, fmt.Errorf("%s: cannot be read: %w", name, err))
			return nil
		case name != root && strings.HasPrefix(entry.Name(), "."):
			if entry.IsDir() {
				return fs.SkipDir
			}
			return nil
		case entry.IsDir() || !isManifest(name):
			return nil
		}
		data, err := fs.ReadFile(fsys, name)
		if err != nil {
			errs = append(errs, fmt.Errorf("%s: cannot be read: %w", name, err))
			return nil
		}
		found, bad := parse(name, data)
		documents, errs = append(documents, found...), append(errs, bad...)
		return nil
	}
	// walk keeps the errors.
	_ = fs.WalkDir(fsys, root, walk)
	return documents, errs
}
