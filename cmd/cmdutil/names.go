package cmdutil

import (
	"fmt"
	"io"
	"reflect"
	"strings"

	"github.com/meshctl/meshctl/engine/snapshot"
)

// Named is a value that is about an object and has no snapshot.Ref that says so.
type Named interface{ Object() snapshot.Ref }

var (
	refType   = reflect.TypeFor[snapshot.Ref]()
	namedType = reflect.TypeFor[Named]()
)

// itemType is the type of a value, or of the elements of a list.
func itemType(value any) reflect.Type {
	t := bare(reflect.TypeOf(value))
	if t.Kind() == reflect.Slice {
		return t.Elem()
	}
	return t
}

// hasName reports whether values of this type are about an object.
func hasName(value any) bool {
	t := itemType(value)
	return t.Implements(namedType) || reflect.PointerTo(t).Implements(namedType) || refField(t) != nil
}

// refField is the first field that is a Ref: what a value is about.
func refField(t reflect.Type) []int {
	if t.Kind() != reflect.Struct {
		return nil
	}
	for i := range t.NumField() {
		f := t.Field(i)
		if f.Type == refType && f.IsExported() {
			return f.Index
		}
		if f.Anonymous && f.IsExported() {
			if below := refField(f.Type); below != nil {
				return append([]int{i}, below...)
			}
		}
	}
	return nil
}

// refOf is the object that a value is about; zero if it is about none.
func refOf(v reflect.Value) snapshot.Ref {
	if v.CanAddr() {
		v = v.Addr() // for methods of pointers
	}
	for v.Kind() == reflect.Pointer || v.Kind() == reflect.Interface {
		if named, ok := v.Interface().(Named); ok {
			return named.Object()
		}
		v = v.Elem()
	}
	if named, ok := v.Interface().(Named); ok {
		return named.Object()
	}
	if field := refField(v.Type()); field != nil {
		ref, _ := v.FieldByIndex(field).Interface().(snapshot.Ref)
		return ref
	}
	return snapshot.Ref{}
}

// printNames prints what a value, or each element of a list, is about as KIND.GROUP/NAME, as kubectl
// prints and takes it; an object of which there are several once.
func printNames(out io.Writer, value any) error {
	list := []reflect.Value{reflect.ValueOf(value)}
	if list[0].Kind() == reflect.Slice {
		v := list[0]
		list = nil
		for i := range v.Len() {
			list = append(list, v.Index(i))
		}
	}
	var b strings.Builder
	printed := map[string]bool{}
	for _, item := range list {
		ref := refOf(item)
		if ref == (snapshot.Ref{}) {
			continue
		}
		kind := strings.ToLower(ref.Kind.String())
		if group := ref.Kind.Info().Group; group != "" {
			kind += "." + group
		}
		if line := kind + "/" + Clean(ref.Name) + "\n"; !printed[line] {
			printed[line] = true
			b.WriteString(line)
		}
	}
	if _, err := io.WriteString(out, b.String()); err != nil {
		return fmt.Errorf("print names: %w", err)
	}
	return nil
}
