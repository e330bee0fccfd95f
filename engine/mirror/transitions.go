package mirror

import (
	"maps"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// Transitions are the status of each condition of an object, by type, and since when it has it. What
// follows from an input has no times: who writes a status takes them from what is there, or sets them
// (lastTransitionTime in k8s.io/apimachinery/pkg/apis/meta/v1.Condition).
type Transitions map[string]transition

type transition struct{ status, since string }

// transitionsOf reads the conditions of a status, as JSON has it; nil if it has none.
func transitionsOf(status any) Transitions {
	var out Transitions
	for c := range conditionsOf(status) {
		name, _ := c["type"].(string)
		is, _ := c["status"].(string)
		since, _ := c["lastTransitionTime"].(string)
		if _, err := time.Parse(time.RFC3339, since); err != nil {
			continue
		}
		if out == nil {
			out = Transitions{}
		}
		out[name] = transition{is, since}
	}
	return out
}

// Date is a status, as JSON has it, with the times of its conditions: since when they are as they are,
// or now where they were otherwise. Of a status without conditions nothing changes.
func (t Transitions) Date(status any, now time.Time) any {
	fields, _ := status.(map[string]any)
	var dated []any
	for c := range conditionsOf(status) {
		name, _ := c["type"].(string)
		since := metav1.NewTime(now).UTC().Format(time.RFC3339)
		if before, known := t[name]; known && before.status == c["status"] {
			since = before.since
		}
		c = maps.Clone(c)
		c["lastTransitionTime"] = since
		dated = append(dated, c)
	}
	if dated == nil {
		return status
	}
	fields = maps.Clone(fields)
	fields["conditions"] = dated
	return fields
}

// conditionsOf are the conditions of a status, as JSON has it.
func conditionsOf(status any) func(yield func(map[string]any) bool) {
	return func(yield func(map[string]any) bool) {
		fields, _ := status.(map[string]any)
		list, _ := fields["conditions"].([]any)
		for _, element := range list {
			if c, ok := element.(map[string]any); ok && !yield(c) {
				return
			}
		}
	}
}
