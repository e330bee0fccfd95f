package tui

import (
	"reflect"

	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/kubernetes/scheme"
)

func addKubernetes(s *runtime.Scheme) error { return scheme.AddToScheme(s) }

// objectsOf lists the objects in all lists of a struct.
func objectsOf(of any) []runtime.Object {
	var out []runtime.Object
	value := reflect.ValueOf(of).Elem()
	for i := range value.NumField() {
		list := value.Field(i)
		if list.Kind() != reflect.Slice {
			continue
		}
		for j := range list.Len() {
			if o, ok := list.Index(j).Interface().(runtime.Object); ok {
				out = append(out, o)
			}
		}
	}
	return out
}
