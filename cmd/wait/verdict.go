package wait

import (
	"fmt"
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"

	commonv1 "github.com/meshctl/meshctl/engine/api/common/v1"
)

// state is how far an object is.
type state int

const (
	// pending: it may still get there.
	pending state = iota
	// met: it is there.
	met
	// rejected: it does not get there unless somebody edits it, or something else.
	rejected
)

// look says how far an object is with a condition, and why it is not there yet.
func look(object *unstructured.Unstructured, condition string) (state, string) {
	generation := object.GetGeneration()
	var status struct {
		ObservedGeneration int64              `json:"observedGeneration"`
		Conditions         []metav1.Condition `json:"conditions"`
	}
	raw, _, _ := unstructured.NestedMap(object.Object, "status")
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(raw, &status); err != nil {
		return pending, "its status cannot be read: " + err.Error()
	}
	switch {
	case status.ObservedGeneration == 0 && len(status.Conditions) == 0:
		return pending, "`meshctl serve` has not processed it yet"
	case status.ObservedGeneration != generation:
		return pending, fmt.Sprintf("`meshctl serve` has processed generation %d of it, and not yet %d", status.ObservedGeneration, generation)
	}
	find := func(name string) *metav1.Condition {
		at := slices.IndexFunc(status.Conditions, func(c metav1.Condition) bool { return c.Type == name })
		if at < 0 || status.Conditions[at].ObservedGeneration != generation {
			return nil
		}
		return &status.Conditions[at]
	}
	found := find(condition)
	if found == nil {
		return pending, "its status has no condition " + condition + ": the `meshctl serve` that wrote it may be older"
	}
	if found.Status == metav1.ConditionTrue {
		return met, ""
	}
	if accepted := find(commonv1.ConditionAccepted); accepted != nil && accepted.Status == metav1.ConditionFalse {
		return rejected, because(accepted)
	}
	return pending, because(found)
}

// because is the reason of a condition, with its message.
func because(c *metav1.Condition) string {
	if c.Message == "" {
		return c.Reason
	}
	return c.Message + " (" + c.Reason + ")"
}
