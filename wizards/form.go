package wizards

import (
	"bytes"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	utiljson "k8s.io/apimachinery/pkg/util/json"

	"github.com/meshctl/meshctl/engine/snapshot"
)

// Answers are values by the name of their flag. A name that begins with "?" is
// not a flag: it stores the answer to a question such as that of askChoice.
type Answers map[string][]string

// AnyField is the flag for fields that have no flag of their own.
const AnyField = "field"

// Field is a flag and the field that it sets.
type Field struct {
	// Flag is its name without dashes.
	Flag string
	// Path of the field below spec; [0] is the first element of a list.
	Path string
	// Usage is its help text.
	Usage string
	// Unless names a part of the spec: the flag says that this part is left out
	// on purpose, and sets nothing.
	Unless string

	codec codec
}

// Value names the flag's values in help texts; empty for a boolean flag.
func (f *Field) Value() string { return f.codec.value }

// NamesServices reports whether its values begin with the name of a service.
func (f *Field) NamesServices() bool { return f.codec.value == "service" || f.codec.value == "target" }

// Names is the kind of the objects that its values are, as namespace/name; NoKind if they are others.
func (f *Field) Names() snapshot.Kind {
	return map[string]snapshot.Kind{"mesh": snapshot.Mesh, "virtualmesh": snapshot.VirtualMesh, "role": snapshot.Role}[f.codec.value]
}

// requirement is a part of the spec that must be set, or one of several with | between them, and the flags that set it.
type requirement struct {
	part  string
	flags string
}

// Form has the flags and the questions of one kind.
type Form struct {
	Kind   snapshot.Kind
	Fields []Field

	requires []requirement
	// sections of the questions, in their order.
	sections []section
}

// Field finds the field of a flag; nil if the form has no such flag.
func (f *Form) Field(flag string) *Field {
	for i := range f.Fields {
		if f.Fields[i].Flag == flag {
			return &f.Fields[i]
		}
	}
	return nil
}

// partOf is the part of the spec to which a path belongs. AnswersFor expresses a
// part completely by its flags, or not at all.
func partOf(path string) string {
	end := strings.IndexAny(path, ".[")
	if end < 0 {
		return path
	}
	for _, whole := range divided {
		if rest, ok := strings.CutPrefix(path, whole+"."); ok {
			return whole + "." + partOf(rest)
		}
	}
	return path[:end]
}

// divided are the fields of specs that are not one part, but one for each field below.
var divided = []string{"policy", "federation"}

// isSet reports whether the answers set a part of the spec.
func (f *Form) isSet(wanted string, answers Answers) bool {
	for i := range f.Fields {
		field := &f.Fields[i]
		p := field.Unless
		if p == "" {
			p = partOf(field.Path)
		}
		if len(answers[field.Flag]) > 0 && (p == wanted || strings.HasPrefix(p, wanted+".")) {
			return true
		}
	}
	return slices.ContainsFunc(answers[AnyField], func(s string) bool {
		path, _, _ := strings.Cut(s, "=")
		return path == wanted || strings.HasPrefix(path, wanted+".") || strings.HasPrefix(path, wanted+"[")
	})
}

// Missing names the flags that are required besides the answers, a line for each
// part of the spec; empty if none.
func (f *Form) Missing(answers Answers) string {
	var lines []string
	for _, n := range f.requires {
		if !slices.ContainsFunc(strings.Split(n.part, "|"), func(part string) bool { return f.isSet(part, answers) }) {
			lines = append(lines, n.flags)
		}
	}
	return strings.Join(lines, "\n  ")
}

// Spec makes the spec from answers.
func (f *Form) Spec(answers Answers) (map[string]any, error) {
	spec := map[string]any{}
	for i := range f.Fields {
		field := &f.Fields[i]
		values := answers[field.Flag]
		if len(values) == 0 || field.Unless != "" {
			continue
		}
		value, err := field.codec.parse(values)
		if err != nil {
			return nil, fmt.Errorf("--%s: %w", field.Flag, err)
		}
		if err := set(spec, field.Path, value); err != nil {
			return nil, fmt.Errorf("--%s: %w", field.Flag, err)
		}
	}
	for _, given := range answers[AnyField] {
		path, text, ok := strings.Cut(given, "=")
		var value any
		if !ok || path == "" || utiljson.Unmarshal([]byte(text), &value) != nil {
			return nil, fmt.Errorf(`--%s %q: must be PATH=JSON, such as policy.requestTimeout='"3s"'`, AnyField, given)
		}
		if err := set(spec, path, value); err != nil {
			return nil, fmt.Errorf("--%s: %w", AnyField, err)
		}
	}
	return spec, nil
}

// flagOf is the flag that was given for a field of an object, by the path that complaints have; empty if none was.
func (f *Form) flagOf(path string, answers Answers) string {
	best, length := "", 0
	for i := range f.Fields {
		field := &f.Fields[i]
		rest, below := strings.CutPrefix(path, "spec."+field.Path)
		if !below || field.Path == "" || len(answers[field.Flag]) == 0 || rest != "" && rest[0] != '.' && rest[0] != '[' {
			continue
		}
		if len(field.Path) > length {
			best, length = field.Flag, len(field.Path)
		}
	}
	return best
}

// Object makes the object from answers.
func (f *Form) Object(namespace, name string, answers Answers) (*unstructured.Unstructured, error) {
	spec, err := f.Spec(answers)
	if err != nil {
		return nil, err
	}
	info := f.Kind.Info()
	object := &unstructured.Unstructured{Object: map[string]any{"spec": spec}}
	object.SetAPIVersion(info.GroupVersion().String())
	object.SetKind(info.Kind)
	object.SetName(name)
	object.SetNamespace(namespace)
	return object, nil
}

// AnswersFor turns a spec into flags; what they cannot express, into AnyField.
func (f *Form) AnswersFor(spec map[string]any) (Answers, error) {
	answers := Answers{}
	for i := range f.Fields {
		field := &f.Fields[i]
		if field.Unless != "" {
			if _, ok := spec[field.Unless]; !ok {
				answers[field.Flag] = []string{"true"}
			}
			continue
		}
		if value, ok := get(spec, field.Path); ok {
			if values, printable := field.codec.format(value); printable {
				answers[field.Flag] = values
			}
		}
	}
	for _, p := range parts(spec) {
		want, _ := get(spec, p)
		back, err := f.Spec(answers)
		if err != nil {
			back = nil
		}
		got, ok := get(back, p)
		if ok && same(want, got) {
			continue
		}
		if err := f.keepPart(answers, p, want); err != nil {
			return nil, err
		}
	}
	return answers, nil
}

// keepPart expresses a part of a spec by AnyField instead of by its flags.
func (f *Form) keepPart(answers Answers, part string, value any) error {
	for i := range f.Fields {
		if field := &f.Fields[i]; field.Unless == "" && partOf(field.Path) == part {
			delete(answers, field.Flag)
		}
	}
	data, err := json.Marshal(value)
	if err != nil {
		return fmt.Errorf("%s: %w", part, err)
	}
	answers[AnyField] = append(answers[AnyField], part+"="+string(snapshot.EscapeJSON(data)))
	return nil
}

// parts lists the parts of a spec, ascending.
func parts(spec map[string]any) []string {
	var out []string
	for _, key := range sortedKeys(spec) {
		whole, ok := spec[key].(map[string]any)
		if !slices.Contains(divided, key) || !ok || len(whole) == 0 {
			out = append(out, key)
			continue
		}
		for _, inner := range sortedKeys(whole) {
			out = append(out, key+"."+inner)
		}
	}
	return out
}

func same(a, b any) bool {
	x, errX := json.Marshal(a)
	y, errY := json.Marshal(b)
	return errX == nil && errY == nil && bytes.Equal(x, y)
}

// YAML is the manifest of an object, without the fields that the server sets.
func YAML(object *unstructured.Unstructured) ([]byte, error) {
	metadata := map[string]any{"name": object.GetName(), "namespace": object.GetNamespace()}
	if labels := object.GetLabels(); len(labels) > 0 {
		metadata["labels"] = labels
	}
	if annotations := object.GetAnnotations(); len(annotations) > 0 {
		metadata["annotations"] = annotations
	}
	content := map[string]any{"apiVersion": object.GetAPIVersion(), "kind": object.GetKind(), "metadata": metadata}
	if spec, ok := object.Object["spec"]; ok {
		content["spec"] = spec
	}
	data, err := snapshot.YAML(content)
	if err != nil {
		return nil, fmt.Errorf("%s %s: write as YAML: %w", object.GetKind(), object.GetName(), err)
	}
	return data, nil
}

// set sets the value at a path of a tree.
func set(tree map[string]any, path string, value any) error {
	head, rest, more := strings.Cut(path, ".")
	name, indexed := strings.CutSuffix(head, "[0]")
	if strings.ContainsAny(name, "[]") || name == "" {
		return fmt.Errorf("%q: must be a path such as policy.retries.attempts; in a list, only [0] or the complete list can be set", path)
	}
	if indexed {
		list, _ := tree[name].([]any)
		if len(list) == 0 {
			list = []any{map[string]any{}}
			tree[name] = list
		}
		element, ok := list[0].(map[string]any)
		if !ok {
			return fmt.Errorf("%s[0] is not a mapping", name)
		}
		if !more {
			list[0] = value
			return nil
		}
		return set(element, rest, value)
	}
	if more {
		inner, ok := tree[name].(map[string]any)
		if !ok {
			inner = map[string]any{}
			tree[name] = inner
		}
		return set(inner, rest, value)
	}
	tree[name] = value
	return nil
}

// get finds a value in a tree.
func get(tree map[string]any, path string) (any, bool) {
	head, rest, more := strings.Cut(path, ".")
	name, indexed := strings.CutSuffix(head, "[0]")
	value, ok := tree[name]
	if indexed {
		list, isList := value.([]any)
		if !isList || len(list) == 0 {
			return nil, false
		}
		value = list[0]
	}
	if !ok || !more {
		return value, ok
	}
	inner, isMap := value.(map[string]any)
	if !isMap {
		return nil, false
	}
	return get(inner, rest)
}
