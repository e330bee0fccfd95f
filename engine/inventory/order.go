package inventory

import (
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// CompareAge orders objects by precedence: the older first, then by namespace and
// name, which also orders objects that were never stored.
func CompareAge(a, b metav1.Object) int {
	at, bt := a.GetCreationTimestamp(), b.GetCreationTimestamp()
	if c := at.Time.Compare(bt.Time); c != 0 {
		return c
	}
	if c := strings.Compare(a.GetNamespace(), b.GetNamespace()); c != 0 {
		return c
	}
	return strings.Compare(a.GetName(), b.GetName())
}
