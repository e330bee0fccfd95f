package watch

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	discoveryv1 "github.com/meshctl/meshctl/engine/api/discovery/v1"
	enterprisev1beta1 "github.com/meshctl/meshctl/engine/api/enterprise/v1beta1"
	networkingv1 "github.com/meshctl/meshctl/engine/api/networking/v1"
	"github.com/meshctl/meshctl/engine/discovery"
)

// reuseWritten keeps in an object what the one that it replaces says of what the engine
// writes and reads again: the last enforced generation of a policy, what a discovered
// object was made of, a virtual address. A translation that has not yet read what the
// previous one wrote writes something else; if both were read here in turn, the two
// would correct each other for ever.
func reuseWritten(before, now metav1.Object) {
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
	case *discoveryv1.Mesh:
		if before, ok := before.(*discoveryv1.Mesh); ok && discovery.SourceChanged(before, now) {
			now.Spec = before.Spec
		}
	case *discoveryv1.Workload:
		if before, ok := before.(*discoveryv1.Workload); ok && discovery.SourceChanged(before, now) {
			now.Spec = before.Spec
		}
	case *discoveryv1.Destination:
		if before, ok := before.(*discoveryv1.Destination); ok {
			keepDestination(before, now)
		}
	case *enterprisev1beta1.VirtualDestination:
		if before, ok := before.(*enterprisev1beta1.VirtualDestination); ok && now.Status.Address != "" && before.Status.Address != "" {
			now.Status.Address = before.Status.Address
		}
	}
}

func keepDestination(before, now *discoveryv1.Destination) {
	if discovery.SourceChanged(before, now) {
		now.Spec = before.Spec
	}
	was, is := before.Status.AppliedFederation, now.Status.AppliedFederation
	if was != nil && is != nil && was.Address != "" && is.Address != "" {
		is.Address = was.Address
	}
}
