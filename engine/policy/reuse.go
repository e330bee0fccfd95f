package policy

import (
	"maps"
	"reflect"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	discoveryv1 "github.com/meshctl/meshctl/engine/api/discovery/v1"
	enterprisev1beta1 "github.com/meshctl/meshctl/engine/api/enterprise/v1beta1"
	networkingv1 "github.com/meshctl/meshctl/engine/api/networking/v1"
	"github.com/meshctl/meshctl/engine/snapshot"
)

// reuseUnchanged replaces objects by the equal ones of before: writing a status makes
// a new object, which is no change. All lists are ascending by namespace and name. read is
// the list that before stands for, or nil: what is the same there is not compared again, or
// each object that ever had a status written would be compared for good.
func reuseUnchanged[T interface {
	comparable
	metav1.Object
}](before, read, now []T, same func(a, b T) bool) []T {
	if len(before) == 0 || snapshot.SameSlice(before, now) {
		return now
	}
	known := len(read) == len(before)
	if known && snapshot.SameSlice(read, now) {
		return before
	}
	out := make([]T, len(now))
	at := 0
	for i, n := range now {
		out[i] = n
		for at < len(before) && snapshot.CompareNames(before[at], n) < 0 {
			at++
		}
		if at < len(before) && (known && read[at] == n || snapshot.CompareNames(before[at], n) == 0 && sameMetadata(before[at], n) && same(before[at], n)) {
			out[i] = before[at]
		}
	}
	return out
}

// sameMetadata compares the metadata that plans depend on.
func sameMetadata(a, b metav1.Object) bool {
	return a.GetGeneration() == b.GetGeneration() && a.GetUID() == b.GetUID() &&
		a.GetCreationTimestamp().Time.Equal(b.GetCreationTimestamp().Time)
}

func sameTraffic(a, b *networkingv1.TrafficPolicy) bool {
	return a == b || reflect.DeepEqual(&a.Spec, &b.Spec)
}

func sameAccess(a, b *networkingv1.AccessPolicy) bool {
	return a == b || reflect.DeepEqual(&a.Spec, &b.Spec)
}

func sameVirtualMesh(a, b *networkingv1.VirtualMesh) bool {
	// What an operator asks of the trust stands in annotations, and is no new generation.
	return a == b || maps.Equal(a.Annotations, b.Annotations) && reflect.DeepEqual(&a.Spec, &b.Spec)
}

func sameDependency(a, b *enterprisev1beta1.ServiceDependency) bool {
	return a == b || reflect.DeepEqual(&a.Spec, &b.Spec)
}

func sameVirtualDestination(a, b *enterprisev1beta1.VirtualDestination) bool {
	return a == b || reflect.DeepEqual(&a.Spec, &b.Spec)
}

// sameStored compares the accepted specs: nothing else of a stored Destination
// matters.
func sameStored(a, b *discoveryv1.Destination) bool {
	return a == b || reflect.DeepEqual(a.Status.AppliedTrafficPolicies, b.Status.AppliedTrafficPolicies) &&
		reflect.DeepEqual(a.Status.AppliedAccessPolicies, b.Status.AppliedAccessPolicies)
}
