package cmdutil

import (
	"encoding"
	"encoding/json"
	"fmt"
	"io"
	"reflect"
	"slices"
	"strings"

	"k8s.io/client-go/util/jsonpath"

	"github.com/meshctl/meshctl/engine/snapshot"
)

// jsonPath is a template of package k8s.io/client-go/util/jsonpath, as kubectl has.
type jsonPath struct {
	text string
	root *jsonpath.ListNode
}

// parseJSONPath reads a template. One without braces is a single path: nobody wants its text back.
func parseJSONPath(text string) (expression, error) {
	if !strings.Contains(text, "{") {
		return parsePath(text)
	}
	return newJSONPath(text)
}

// parsePath reads a single path as kubectl does: {.a.b}, .a.b or a.b.
func parsePath(text string) (*jsonPath, error) {
	path := strings.TrimSpace(text)
	if strings.HasPrefix(path, "{") && strings.HasSuffix(path, "}") {
		path = path[1 : len(path)-1]
	}
	if path == "" {
		return nil, fmt.Errorf("%q is no path; want one such as .ref.name", text)
	}
	if !strings.HasPrefix(path, ".") && !strings.HasPrefix(path, "[") && !strings.HasPrefix(path, "$") {
		path = "." + path
	}
	return newJSONPath("{" + path + "}")
}

func newJSONPath(text string) (*jsonPath, error) {
	parsed, err := jsonpath.Parse("path", text)
	if err != nil {
		return nil, fmt.Errorf("%s is no path: %w; want one such as {.ref.name}", text, err)
	}
	return &jsonPath{text, parsed.Root}, nil
}

// prepared is the path for some data, which must have the fields that it names, as far as the type says.
func (j *jsonPath) prepared(data any, shape reflect.Type) (*jsonpath.JSONPath, any, error) {
	data, shape = withItems(j.text, data, shape)
	if err := checkPath(j.root, shape); err != nil {
		return nil, nil, FlagErrorf("path %s: %w", j.text, err)
	}
	// Reading leaves traces in it: it is made anew each time.
	path := jsonpath.New("path").AllowMissingKeys(true)
	return path, data, path.Parse(j.text)
}

func (j *jsonPath) print(out io.Writer, data any, shape reflect.Type, _ bool) error {
	path, data, err := j.prepared(data, shape)
	if err != nil {
		return err
	}
	if err := path.Execute(out, data); err != nil {
		return FlagErrorf("path %s: %w; -o json shows what there is", j.text, err)
	}
	return nil
}

// find is what a single path leads to.
func (j *jsonPath) find(data any, shape reflect.Type) ([]any, error) {
	path, data, err := j.prepared(data, shape)
	if err != nil {
		return nil, err
	}
	found, err := path.FindResults(data)
	if err != nil {
		return nil, FlagErrorf("path %s: %w; -o json shows what there is", j.text, err)
	}
	var out []any
	for _, list := range found {
		for _, v := range list {
			if v.IsValid() && v.CanInterface() && v.Interface() != nil {
				out = append(out, v.Interface())
			}
		}
	}
	return out, nil
}

// checkPath fails for a field that no value of a type has: a missing field is printed as nothing, so that
// a mistake would look like an answer.
func checkPath(root *jsonpath.ListNode, shape reflect.Type) error {
	within := []reflect.Type{shape}
	for _, node := range root.Nodes {
		list, ok := node.(*jsonpath.ListNode)
		if !ok {
			continue // text
		}
		nodes := list.Nodes
		if len(nodes) > 0 {
			if word, ok := nodes[0].(*jsonpath.IdentifierNode); ok && word.Name == "end" && len(within) > 1 {
				within = within[:len(within)-1]
				continue
			} else if ok && word.Name == "range" {
				leads, err := typeAt(nodes[1:], within[len(within)-1])
				if err != nil {
					return err
				}
				within = append(within, leads)
				continue
			}
		}
		if _, err := typeAt(nodes, within[len(within)-1]); err != nil {
			return err
		}
	}
	return nil
}

// typeAt is the type to which a path leads from another one; nil if that is not known.
func typeAt(nodes []jsonpath.Node, t reflect.Type) (reflect.Type, error) {
	for _, node := range nodes {
		for t != nil && t.Kind() == reflect.Pointer {
			t = t.Elem()
		}
		if t == nil || spelled(t) {
			return nil, nil
		}
		list := t.Kind() == reflect.Slice || t.Kind() == reflect.Array
		switch n := node.(type) {
		case *jsonpath.FieldNode:
			next, err := fieldAt(n.Value, t, list)
			if next == nil || err != nil {
				return nil, err
			}
			t = next
		case *jsonpath.ArrayNode:
			if !list {
				return nil, nil
			}
			t = t.Elem()
		case *jsonpath.FilterNode:
			if !list {
				return nil, nil
			}
			t = t.Elem()
			if _, err := typeAt(n.Left.Nodes, t); err != nil {
				return nil, err
			}
		default:
			return nil, nil
		}
	}
	return t, nil
}

// fieldAt is the type of a field of a value; nil if that is not known.
func fieldAt(name string, t reflect.Type, list bool) (reflect.Type, error) {
	if list {
		return nil, fmt.Errorf("there is a list where it asks for %q; write [*] before .%s for each of its elements, or {.items[*].%s} at the start", name, name, name)
	}
	if t.Kind() != reflect.Struct {
		return nil, nil
	}
	fields := map[string]reflect.Type{}
	jsonFields(t, fields)
	if field, known := fields[name]; known {
		return field, nil
	}
	names := make([]string, 0, len(fields))
	for field := range fields {
		names = append(names, field)
	}
	slices.Sort(names)
	hint := "there is: " + strings.Join(names, ", ")
	if similar := snapshot.Nearest(name, names); similar != "" {
		hint = "did you mean " + similar + "? " + hint
	}
	return nil, fmt.Errorf("there is no field %q; %s", name, hint)
}

// jsonFields adds the fields that a struct has as JSON.
func jsonFields(t reflect.Type, out map[string]reflect.Type) {
	for i := range t.NumField() {
		f := t.Field(i)
		name, _, _ := strings.Cut(f.Tag.Get("json"), ",")
		switch {
		case name == "-":
		case f.Anonymous && name == "":
			if below := bare(f.Type); below.Kind() == reflect.Struct {
				jsonFields(below, out)
			}
		case f.IsExported() && name == "":
			out[f.Name] = f.Type
		case f.IsExported():
			out[name] = f.Type
		}
	}
}

var (
	jsonMarshaler = reflect.TypeFor[json.Marshaler]()
	textMarshaler = reflect.TypeFor[encoding.TextMarshaler]()
)

// spelled reports whether values of a type say themselves how they look as JSON.
func spelled(t reflect.Type) bool {
	p := reflect.PointerTo(t)
	return p.Implements(jsonMarshaler) || p.Implements(textMarshaler)
}
