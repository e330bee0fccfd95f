package snapshot

import (
	"reflect"
	"slices"
	"strings"
)

// FieldsOf lists the fields that can be written in a value of a type, as paths
// of JSON names joined by dots, ascending. Lists, maps and pointers are looked
// through; what has no fields of its own ends a path.
func FieldsOf(t reflect.Type) []string {
	var out []string
	walkType(t, "", func(path string) { out = append(out, path) })
	slices.Sort(out)
	return out
}

// FieldsIn lists the fields that are set in a value, as FieldsOf spells them,
// ascending and each once.
func FieldsIn(value any) []string {
	var out []string
	walkValue(reflect.ValueOf(value), "", func(path string) { out = append(out, path) })
	slices.Sort(out)
	return slices.Compact(out)
}

func walkType(t reflect.Type, path string, leaf func(string)) {
	switch t.Kind() {
	case reflect.Pointer, reflect.Slice, reflect.Map:
		walkType(t.Elem(), path, leaf)
		return
	case reflect.Struct:
		found := false
		for i := range t.NumField() {
			if name := jsonName(t.Field(i)); name != "" {
				found = true
				walkType(t.Field(i).Type, join(path, name), leaf)
			}
		}
		if found {
			return
		}
	default:
	}
	leaf(path)
}

// walkValue reports whether anything is set.
func walkValue(v reflect.Value, path string, leaf func(string)) bool {
	set := false
	switch v.Kind() {
	case reflect.Pointer:
		if v.IsNil() {
			return false
		}
		if !walkValue(v.Elem(), path, leaf) {
			leaf(path) // that it is there says something
		}
		return true
	case reflect.Slice:
		for i := range v.Len() {
			if !hasFields(v.Type().Elem()) || !walkValue(v.Index(i), path, leaf) {
				leaf(path)
			}
			set = true
		}
	case reflect.Map:
		for _, key := range v.MapKeys() {
			if !hasFields(v.Type().Elem()) || !walkValue(v.MapIndex(key), path, leaf) {
				leaf(path)
			}
			set = true
		}
	case reflect.Struct:
		for i := range v.NumField() {
			if name := jsonName(v.Type().Field(i)); name != "" {
				set = walkValue(v.Field(i), join(path, name), leaf) || set
			}
		}
	default:
		if set = !v.IsZero(); set {
			leaf(path)
		}
	}
	return set
}

func hasFields(t reflect.Type) bool {
	if t.Kind() != reflect.Struct {
		return false
	}
	for i := range t.NumField() {
		if jsonName(t.Field(i)) != "" {
			return true
		}
	}
	return false
}

// jsonName is empty for fields that are not written.
func jsonName(f reflect.StructField) string {
	name, _, _ := strings.Cut(f.Tag.Get("json"), ",")
	if !f.IsExported() || name == "-" {
		return ""
	}
	return name
}

func join(path, name string) string {
	if path == "" {
		return name
	}
	return path + "." + name
}
