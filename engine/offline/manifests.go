package offline

import (
	"errors"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/meshctl/meshctl/engine/snapshot"
)

// Manifest is an object of the management plane as somebody wrote it in a file.
type Manifest struct {
	Ref    snapshot.Ref
	Object snapshot.APIObject
	// Written is the same, with all that is in the file.
	Written *unstructured.Unstructured

	at place
}

// Errorf makes an error that begins with the file and the line of a field; of the object, if the
// path is empty.
func (m *Manifest) Errorf(path, format string, args ...any) error {
	return m.at.errorf(steps(path), format, args...)
}

// At is the file and the line of a field, as of Errorf.
func (m *Manifest) At(path string) (file string, line int) {
	return m.at.file, m.at.line(append(append([]string(nil), m.at.path...), steps(path)...))
}

// Manifests reads the objects of the management plane in a file. Others counts the objects of other
// kinds, which are left out. The error has one line for each mistake, which begins with the file and
// the line.
func Manifests(file string, data []byte) (list []Manifest, others map[schema.GroupKind]int, err error) {
	documents, errs := parse(file, data)
	f := newFolder(file, snapshot.ManagementSide, &snapshot.Management{})
	for _, doc := range documents {
		m, err := f.manifest(doc)
		if err != nil {
			errs = append(errs, err)
		} else if m != nil {
			list = append(list, *m)
		}
	}
	others = map[schema.GroupKind]int{}
	for gvk, n := range f.left {
		others[gvk.GroupKind()] += n
	}
	if err := errors.Join(errs...); err != nil {
		return nil, nil, err
	}
	return list, others, nil
}

// manifest reads a document; nil if it is of another kind.
func (f *folder) manifest(doc document) (*Manifest, error) {
	kind, known := snapshot.KindOf(doc.gvk.GroupKind())
	had := len(f.objects[kind])
	if err := f.read(doc); err != nil {
		return nil, err
	}
	if !known || len(f.objects[kind]) == had {
		return nil, nil //nolint:nilnil // it is counted
	}
	object := f.objects[kind][had]
	written := &unstructured.Unstructured{}
	if err := written.UnmarshalJSON(doc.json); err != nil { // it keeps whole numbers
		return nil, doc.at.errorf(nil, "%w", err)
	}
	return &Manifest{Ref: snapshot.RefOf(kind, object), Object: object, Written: written, at: doc.at}, nil
}
