package mirror

import (
	"encoding/json"
	"strings"

	utiljson "k8s.io/apimachinery/pkg/util/json"

	"github.com/meshctl/meshctl/engine/snapshot"
)

// Fields is a set of fields as managed fields have it: "f:name" is a field of
// an object, "k:{…}" the list element with that key, `v:…` an element of a set,
// "." the thing itself. An empty set is all of a value.
type Fields map[string]Fields

// ManagedFields is an entry of metadata.managedFields, as far as it matters here.
type ManagedFields struct {
	Manager     string          `json:"manager"`
	Operation   string          `json:"operation"`
	Subresource string          `json:"subresource"`
	FieldsV1    json.RawMessage `json:"fieldsV1"`
}

// Applied finds the fields that meshctl applied to the object itself
// ("") or to its status ("status"); nil if it never did, or if others have
// taken all of them over.
func Applied(entries []ManagedFields, subresource string) (Fields, error) {
	for _, e := range entries {
		if e.Manager == snapshot.FieldManager && e.Operation == "Apply" && e.Subresource == subresource {
			var out Fields
			err := json.Unmarshal(e.FieldsV1, &out)
			return out, err
		}
	}
	return nil, nil
}

// Of is the part of a JSON document below the named fields that the set has.
func (f Fields) Of(document []byte, name string) (any, error) {
	sub, ours := f["f:"+name]
	if !ours || len(document) == 0 {
		return nil, nil
	}
	var value any
	if err := utiljson.Unmarshal(document, &value); err != nil {
		return nil, err
	}
	return sub.project(value), nil
}

// project keeps of a value what the set has, so that what others added to it,
// and what the API server filled in, does not count.
func (f Fields) project(value any) any {
	if len(f) == 0 {
		return value
	}
	switch v := value.(type) {
	case map[string]any:
		out := make(map[string]any, len(f))
		for key, sub := range f {
			if name, ok := strings.CutPrefix(key, "f:"); ok {
				if child, exists := v[name]; exists {
					out[name] = sub.project(child)
				}
			}
		}
		return out
	case []any:
		return f.elements(v)
	default:
		return value
	}
}

// elements projects a list whose elements have owners of their own.
func (f Fields) elements(list []any) []any {
	byKey, values := map[string]Fields{}, map[string]bool{}
	var names map[string]any
	for path, sub := range f {
		kind, text, _ := strings.Cut(path, ":")
		var parsed any
		if utiljson.Unmarshal([]byte(text), &parsed) != nil {
			continue
		}
		spelled := string(appendCanonical(nil, parsed))
		switch key, isKey := parsed.(map[string]any); {
		case kind == "k" && isKey:
			byKey[spelled], names = sub, key
		case kind == "v":
			values[spelled] = true
		}
	}
	out := make([]any, 0, len(list))
	for _, element := range list {
		if sub, ours := byKey[keyOf(element, names)]; ours {
			out = append(out, sub.project(element))
		} else if values[string(appendCanonical(nil, element))] {
			out = append(out, element)
		}
	}
	return out
}

// keyOf spells the key of a list element, given the names of its key fields.
func keyOf(element any, names map[string]any) string {
	object, ok := element.(map[string]any)
	if !ok || names == nil {
		return ""
	}
	key := make(map[string]any, len(names))
	for name := range names {
		key[name] = object[name]
	}
	return string(appendCanonical(nil, key))
}

// strings keeps of labels or annotations what the set has.
func (f Fields) strings(name string, values map[string]string) map[string]string {
	out := map[string]string{}
	for key := range f["f:metadata"]["f:"+name] {
		key = strings.TrimPrefix(key, "f:")
		if value, exists := values[key]; exists {
			out[key] = value
		}
	}
	return out
}
