package watch

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	networkingv1 "github.com/meshctl/meshctl/engine/api/networking/v1"
)

// Of the status of a policy the engine reads one field: whether it was ever in force.

func dropTrafficStatus(o *networkingv1.TrafficPolicy) {
	o.Status = networkingv1.TrafficPolicyStatus{LastEnforcedGeneration: o.Status.LastEnforcedGeneration}
}

func dropAccessStatus(o *networkingv1.AccessPolicy) {
	o.Status = networkingv1.AccessPolicyStatus{LastEnforcedGeneration: o.Status.LastEnforcedGeneration}
}

// carry puts into an object what must not be lost of the one that it replaces.
// A translation that had not seen yet what the one before it wrote takes a
// policy for one that was never in force, and says so; without a memory here,
// the two would go on correcting each other.
func carry(before, now metav1.Object) {
	if before.GetUID() != now.GetUID() {
		return
	}
	switch now := now.(type) {
	case *networkingv1.TrafficPolicy:
		if before, ok := before.(*networkingv1.TrafficPolicy); ok {
			now.Status.LastEnforcedGeneration = max(now.Status.LastEnforcedGeneration, before.Status.LastEnforcedGeneration)
		}
	case *networkingv1.AccessPolicy:
		if before, ok := before.(*networkingv1.AccessPolicy); ok {
			now.Status.LastEnforcedGeneration = max(now.Status.LastEnforcedGeneration, before.Status.LastEnforcedGeneration)
		}
	}
}
