package watch

import (
	networking "istio.io/api/networking/v1alpha3"
	security "istio.io/api/security/v1beta1"
	typev1beta1 "istio.io/api/type/v1beta1"
	istionetworkingv1 "istio.io/client-go/pkg/apis/networking/v1"
	istiosecurityv1 "istio.io/client-go/pkg/apis/security/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// What users wrote for a mesh themselves is compared by what it is about, not by
// what it says.

func named(o metav1.ObjectMeta) metav1.ObjectMeta {
	return metav1.ObjectMeta{Namespace: o.Namespace, Name: o.Name}
}

func stripVirtualService(o *istionetworkingv1.VirtualService) bool {
	o.TypeMeta, o.ObjectMeta = metav1.TypeMeta{}, named(o.ObjectMeta)
	o.Status.Reset()
	hosts, gateways, exportTo := o.Spec.Hosts, o.Spec.Gateways, o.Spec.ExportTo
	o.Spec.Reset()
	o.Spec.Hosts, o.Spec.Gateways, o.Spec.ExportTo = hosts, gateways, exportTo
	return true
}

func stripServiceEntry(o *istionetworkingv1.ServiceEntry) bool {
	o.TypeMeta, o.ObjectMeta = metav1.TypeMeta{}, named(o.ObjectMeta)
	o.Status.Reset()
	hosts, exportTo := o.Spec.Hosts, o.Spec.ExportTo
	o.Spec.Reset()
	o.Spec.Hosts, o.Spec.ExportTo = hosts, exportTo
	return true
}

func stripDestinationRule(o *istionetworkingv1.DestinationRule) bool {
	o.TypeMeta, o.ObjectMeta = metav1.TypeMeta{}, named(o.ObjectMeta)
	o.Status.Reset()
	host, exportTo, selector := o.Spec.Host, o.Spec.ExportTo, o.Spec.WorkloadSelector
	o.Spec.Reset()
	o.Spec.Host, o.Spec.ExportTo = host, exportTo
	if selector != nil { // of which only matters that there is one
		o.Spec.WorkloadSelector = &typev1beta1.WorkloadSelector{}
	}
	return true
}

func stripAuthorizationPolicy(o *istiosecurityv1.AuthorizationPolicy) bool {
	o.TypeMeta, o.ObjectMeta = metav1.TypeMeta{}, named(o.ObjectMeta)
	o.Status.Reset()
	selector, action := o.Spec.Selector, o.Spec.Action
	// Of the rules only matters whether there are any: without, ALLOW lets nobody in.
	rules := o.Spec.Rules[:min(len(o.Spec.Rules), 1)]
	if len(rules) > 0 {
		rules = []*security.Rule{{}}
	}
	targets := o.Spec.TargetRefs
	o.Spec.Reset()
	o.Spec.Selector, o.Spec.Action, o.Spec.Rules, o.Spec.TargetRefs = selector, action, rules, targets
	return true
}

func stripSidecar(o *istionetworkingv1.Sidecar) bool {
	o.TypeMeta, o.ObjectMeta = metav1.TypeMeta{}, named(o.ObjectMeta)
	o.Status.Reset()
	var selector *networking.WorkloadSelector
	if s := o.Spec.WorkloadSelector; s != nil {
		selector = &networking.WorkloadSelector{Labels: s.Labels}
	}
	o.Spec.Reset()
	o.Spec.WorkloadSelector = selector
	return true
}
