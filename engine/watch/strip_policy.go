package watch

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	networkingv1 "github.com/meshctl/meshctl/engine/api/networking/v1"
)

// The engine reads one field of a policy's status: whether it was ever enforced.

func dropTrafficStatus(o *networkingv1.TrafficPolicy) {
	o.Status = networkingv1.TrafficPolicyStatus{LastEnforcedGeneration: o.Status.LastEnforcedGeneration}
}

func dropAccessStatus(o *networkingv1.AccessPolicy) {
	o.Status = networkingv1.AccessPolicyStatus{LastEnforcedGeneration: o.Status.LastEnforcedGeneration}
}

// keepEnforcedGeneration keeps in an object the last enforced generation of the
// one that it replaces. A translation that has not yet read the status written by
// the previous one reports the policy as never enforced; if that were kept here,
// the two would correct each other for ever.
func keepEnforcedGeneration(before, now metav1.Object) {
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
