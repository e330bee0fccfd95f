package snapshot

import (
	"iter"
	"reflect"

	"github.com/meshctl/meshctl/engine/api/scheme"
)

// ObjectsOfMeshes are objects of the types of meshes, by kind. Each list is ascending by namespace and name, and never changes.
type ObjectsOfMeshes [kindCount][]APIObject

// typesOfMeshes are the types of the kinds that users write for meshes and that the engine reads; nil for others. It is read-only.
var typesOfMeshes = func() (out [kindCount]reflect.Type) {
	for k := range kindCount {
		if o := newOfMesh(k); o != nil {
			out[k] = reflect.TypeOf(o)
		}
	}
	return out
}()

// newOfMesh returns an empty object; nil if the kind is none of a mesh.
func newOfMesh(k Kind) APIObject {
	if o := scheme.OfMesh(kinds[k].GroupVersionKind); o != nil {
		return o
	}
	return nil
}

// OfMesh reports whether ObjectsOfMeshes has objects of the kind.
func (k Kind) OfMesh() bool { return typesOfMeshes[k] != nil }

// listOfMesh is the list of a kind of a mesh.
func listOfMesh(k Kind, objects *[]APIObject) ObjectList {
	return typedList[APIObject]{objects, func() APIObject { return newOfMesh(k) }, func(o APIObject) bool { return reflect.TypeOf(o) == typesOfMeshes[k] }}
}

// Each yields the objects of a list that have a type.
func Each[T APIObject](list []APIObject) iter.Seq[T] {
	return func(yield func(T) bool) {
		for _, o := range list {
			if typed, ok := o.(T); ok && !yield(typed) {
				return
			}
		}
	}
}
