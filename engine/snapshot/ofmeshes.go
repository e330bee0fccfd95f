package snapshot

import (
	"iter"
	"reflect"

	"github.com/meshctl/meshctl/engine/api/scheme"
)

// ObjectsOfMeshes are objects of the types of meshes, by kind. Each list is ascending by namespace and name, and never changes.
type ObjectsOfMeshes [kindCount][]APIObject

// typesOfMeshes are the types of the kinds that are written by hand; nil for others. It is read-only.
var typesOfMeshes = func() (out [kindCount]reflect.Type) {
	types := scheme.OfMeshes()
	for k := range kindCount {
		if !kinds[k].ByHand {
			continue
		}
		o, err := types.New(kinds[k].GroupVersionKind)
		if err != nil {
			panic(err) // the table is fixed, so this is a mistake in the program and shows in every run
		}
		out[k] = reflect.TypeOf(o)
	}
	return out
}()

// newOfMesh returns an empty object of a kind that is written by hand.
func newOfMesh(k Kind) APIObject {
	return reflect.New(typesOfMeshes[k].Elem()).Interface().(APIObject)
}

// listOfMesh is the list of a kind that is written by hand.
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
