package apply

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	utiljson "k8s.io/apimachinery/pkg/util/json"

	"github.com/meshctl/meshctl/engine/mirror"
	"github.com/meshctl/meshctl/engine/snapshot"
)

const (
	// maxFields bounds the fields that a Drift names, and maxValue the bytes of a value.
	maxFields = 20
	maxValue  = 120
)

// differenceOf says how an object as an API server answers it differs from what is wanted.
// Fields that others have added to its labels and annotations are theirs.
func differenceOf(raw []byte, wanted *snapshot.Object, plane snapshot.Plane) (snapshot.Drift, error) {
	drift := snapshot.Drift{Ref: wanted.Ref, State: snapshot.DriftChanged}
	var there struct {
		Metadata struct {
			Labels        map[string]string           `json:"labels"`
			Annotations   map[string]string           `json:"annotations"`
			ManagedFields []metav1.ManagedFieldsEntry `json:"managedFields"`
		} `json:"metadata"`
		Spec json.RawMessage `json:"spec"`
	}
	if err := json.Unmarshal(raw, &there); err != nil {
		return drift, fmt.Errorf("%s: decoding: %w", wanted.Ref, err)
	}
	body, err := objectBody(mirror.IDOf(wanted.Ref), "", &content{Content: wanted.Content}, wanted.Ref.Cluster, plane)
	if err != nil {
		return drift, err
	}
	var own struct {
		Metadata metadata `json:"metadata"`
		Spec     any      `json:"spec"`
	}
	if err := utiljson.Unmarshal(body, &own); err != nil {
		return drift, fmt.Errorf("%s: decoding: %w", wanted.Ref, err)
	}
	var spec any
	if len(there.Spec) > 0 {
		if err := utiljson.Unmarshal(there.Spec, &spec); err != nil {
			return drift, fmt.Errorf("%s: decoding: %w", wanted.Ref, err)
		}
	}
	mine, err := ours(raw)
	if err != nil {
		return drift, fmt.Errorf("%s: reading who changed it: %w", wanted.Ref, err)
	}
	applied, err := mine.Of(there.Spec, "spec")
	if err != nil {
		return drift, fmt.Errorf("%s: decoding: %w", wanted.Ref, err)
	}
	fields := differences("spec", spec, own.Spec, applied)
	for name, pair := range map[string][2]map[string]string{
		"metadata.labels": {there.Metadata.Labels, own.Metadata.Labels}, "metadata.annotations": {there.Metadata.Annotations, own.Metadata.Annotations},
	} {
		for key, value := range pair[1] {
			if is, set := pair[0][key]; !set || is != value {
				fields = append(fields, snapshot.DriftField{Path: name + "[" + key + "]", InForce: is, Wanted: value})
			}
		}
	}
	slices.SortFunc(fields, func(a, b snapshot.DriftField) int { return strings.Compare(a.Path, b.Path) })
	drift.Fields = fields[:min(len(fields), maxFields)]
	drift.By, drift.At = changedBy(there.Metadata.ManagedFields)
	return drift, nil
}

// changedBy finds the last field manager but us that changed the object itself.
func changedBy(entries []metav1.ManagedFieldsEntry) (manager string, at time.Time) {
	for _, e := range entries {
		if e.Manager == snapshot.FieldManager || e.Subresource != "" || e.Time == nil || e.Time.Time.Before(at) {
			continue
		}
		manager, at = e.Manager, e.Time.UTC()
	}
	return manager, at
}

// ours are the fields that meshctl applied to an object.
func ours(raw []byte) (mirror.Fields, error) {
	var object struct {
		Metadata struct {
			ManagedFields []mirror.ManagedFields `json:"managedFields"`
		} `json:"metadata"`
	}
	if err := json.Unmarshal(raw, &object); err != nil {
		return nil, err
	}
	return mirror.Applied(object.Metadata.ManagedFields, "")
}

// differences lists the fields of which two JSON values differ. Of what exists and is not
// wanted, only what meshctl applied counts, and everything in lists: others may add fields
// to objects.
func differences(path string, is, wanted, applied any) []snapshot.DriftField {
	switch w := wanted.(type) {
	case map[string]any:
		if i, same := is.(map[string]any); same {
			mine, _ := applied.(map[string]any)
			return inObject(path, i, w, mine)
		}
	case []any:
		if i, same := is.([]any); same && len(i) == len(w) {
			return inList(path, i, w)
		}
	}
	if a, b := short(is), short(wanted); a != b || string(full(is)) != string(full(wanted)) {
		return []snapshot.DriftField{{Path: path, InForce: a, Wanted: b}}
	}
	return nil
}

func inObject(path string, is, wanted, applied map[string]any) (out []snapshot.DriftField) {
	keys := maps.Clone(wanted)
	for key := range is {
		if _, mine := applied[key]; mine {
			keys[key] = nil
		}
	}
	for _, key := range slices.Sorted(maps.Keys(keys)) {
		out = append(out, differences(path+"."+key, is[key], wanted[key], applied[key])...)
	}
	return out
}

// inList compares lists of one length. If one field differs that all elements have, it is one
// difference: weights of 75/15/10 are read together.
func inList(path string, is, wanted []any) (out []snapshot.DriftField) {
	fields := map[string]bool{}
	for i := range is {
		for _, d := range differences("", is[i], wanted[i], is[i]) {
			fields[d.Path] = true
			d.Path = fmt.Sprintf("%s[%d]%s", path, i, d.Path)
			out = append(out, d)
		}
	}
	if len(fields) != 1 || len(is) < 2 {
		return out
	}
	for field := range fields {
		key, found := strings.CutPrefix(field, ".")
		if !found || strings.ContainsAny(key, ".[") {
			return out
		}
		a, ok := column(is, key)
		b, also := column(wanted, key)
		if ok && also {
			return []snapshot.DriftField{{Path: path + "[]." + key, InForce: a, Wanted: b}}
		}
	}
	return out
}

// column joins a field of all elements; false if one is no plain value.
func column(list []any, key string) (string, bool) {
	values := make([]string, len(list))
	for i, element := range list {
		object, ok := element.(map[string]any)
		if !ok {
			return "", false
		}
		switch value := object[key].(type) {
		case map[string]any, []any:
			return "", false
		case nil:
			values[i] = "-"
		default:
			values[i] = short(value)
		}
	}
	return strings.Join(values, "/"), true
}

// full is a value as JSON; empty for nothing.
func full(value any) []byte {
	if value == nil {
		return nil
	}
	data, err := json.Marshal(value)
	if err != nil {
		return []byte(err.Error()) // a decoded value can be encoded
	}
	return data
}

// short is a value for people, cut if it is long.
func short(value any) string {
	if s, ok := value.(string); ok {
		return cut(s)
	}
	return cut(string(full(value)))
}

func cut(s string) string {
	if len(s) > maxValue {
		return strings.ToValidUTF8(s[:maxValue], "") + "…"
	}
	return s
}
