package watch

import (
	enterprisev1beta1 "github.com/meshctl/meshctl/engine/api/enterprise/v1beta1"
	networkingv1 "github.com/meshctl/meshctl/engine/api/networking/v1"
	observabilityv1 "github.com/meshctl/meshctl/engine/api/observability/v1"
)

// The engine reads one field of a policy's status: whether it was ever enforced, or for
// a VirtualDestination its address.

func dropTrafficStatus(o *networkingv1.TrafficPolicy) {
	o.Status = networkingv1.TrafficPolicyStatus{LastEnforcedGeneration: o.Status.LastEnforcedGeneration}
}

func dropAccessStatus(o *networkingv1.AccessPolicy) {
	o.Status = networkingv1.AccessPolicyStatus{LastEnforcedGeneration: o.Status.LastEnforcedGeneration}
}

func dropVirtualStatus(o *enterprisev1beta1.VirtualDestination) {
	o.Status = enterprisev1beta1.VirtualDestinationStatus{Address: o.Status.Address}
}

// dropAccessLogStatus keeps what holds until it is known which proxies send their log.
func dropAccessLogStatus(o *observabilityv1.AccessLogRecord) {
	o.Status = observabilityv1.AccessLogRecordStatus{ObservedGeneration: o.Status.ObservedGeneration, State: o.Status.State}
}

func dropDependencyStatus(o *enterprisev1beta1.ServiceDependency) { reset(&o.Status) }
