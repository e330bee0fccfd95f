package istio

import (
	networking "istio.io/api/networking/v1alpha3"
	typev1beta1 "istio.io/api/type/v1beta1"
	istionetworkingv1 "istio.io/client-go/pkg/apis/networking/v1"
	istiosecurityv1 "istio.io/client-go/pkg/apis/security/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/meshctl/meshctl/engine/snapshot"
)

// reads are the kinds that are inspected. What users wrote about hosts is compared by what it is about, not by what it says; what
// decides about calls is evaluated (see guard).
var reads = map[snapshot.Kind]func(snapshot.APIObject){
	snapshot.VirtualService:      strip(stripVirtualService),
	snapshot.ServiceEntry:        strip(stripServiceEntry),
	snapshot.DestinationRule:     strip(stripDestinationRule),
	snapshot.AuthorizationPolicy: strip(stripAuthorizationPolicy),
	snapshot.PeerAuthentication:  strip(stripPeerAuthentication),
	snapshot.Sidecar:             strip(stripSidecar),
	snapshot.WorkloadEntry:       strip(stripWorkloadEntry),
}

// strip makes a function for objects of one type one for all; it leaves others alone.
func strip[T snapshot.APIObject](of func(T)) func(snapshot.APIObject) {
	return func(o snapshot.APIObject) {
		if typed, ok := o.(T); ok {
			of(typed)
		}
	}
}

func named(o metav1.ObjectMeta) metav1.ObjectMeta {
	return metav1.ObjectMeta{Namespace: o.Namespace, Name: o.Name}
}

// aged are name and age, of objects of which the mesh uses the older of two.
func aged(o metav1.ObjectMeta) metav1.ObjectMeta {
	return metav1.ObjectMeta{Namespace: o.Namespace, Name: o.Name, CreationTimestamp: o.CreationTimestamp}
}

func stripVirtualService(o *istionetworkingv1.VirtualService) {
	o.TypeMeta, o.ObjectMeta = metav1.TypeMeta{}, aged(o.ObjectMeta)
	o.Status.Reset()
	o.Spec.Tcp, o.Spec.Tls = nil, nil
	for _, r := range o.Spec.Http {
		r.CorsPolicy, r.Retries, r.Mirror, r.Mirrors, r.MirrorPercent, r.MirrorPercentage = nil, nil, nil, nil, nil, nil //nolint:staticcheck // users may write it
		// Of these only matters that they are there.
		only(&r.Redirect)
		only(&r.DirectResponse)
		only(&r.Rewrite)
		only(&r.Delegate)
	}
}

// only leaves of a part that it is there.
func only[T any](part **T) {
	if *part != nil {
		*part = new(T)
	}
}

func stripServiceEntry(o *istionetworkingv1.ServiceEntry) {
	o.TypeMeta, o.ObjectMeta = metav1.TypeMeta{}, aged(o.ObjectMeta)
	o.Status.Reset()
	hosts, exportTo := o.Spec.Hosts, o.Spec.ExportTo
	o.Spec.Reset()
	o.Spec.Hosts, o.Spec.ExportTo = hosts, exportTo
}

func stripDestinationRule(o *istionetworkingv1.DestinationRule) {
	o.TypeMeta, o.ObjectMeta = metav1.TypeMeta{}, named(o.ObjectMeta)
	o.Status.Reset()
	host, exportTo, selector, subsets := o.Spec.Host, o.Spec.ExportTo, o.Spec.WorkloadSelector, o.Spec.Subsets
	o.Spec.Reset()
	o.Spec.Host, o.Spec.ExportTo = host, exportTo
	for _, s := range subsets {
		o.Spec.Subsets = append(o.Spec.Subsets, &networking.Subset{Name: s.Name, Labels: s.Labels})
	}
	if selector != nil { // of which only matters that there is one
		o.Spec.WorkloadSelector = &typev1beta1.WorkloadSelector{}
	}
}

func stripAuthorizationPolicy(o *istiosecurityv1.AuthorizationPolicy) {
	isDry := isDryRun(o)
	o.TypeMeta, o.ObjectMeta = metav1.TypeMeta{}, named(o.ObjectMeta)
	o.Status.Reset()
	if isDry {
		o.Annotations = map[string]string{dryRun: "true"}
	}
}

func stripPeerAuthentication(o *istiosecurityv1.PeerAuthentication) {
	o.TypeMeta, o.ObjectMeta = metav1.TypeMeta{}, aged(o.ObjectMeta)
	o.Status.Reset()
}

func stripSidecar(o *istionetworkingv1.Sidecar) {
	o.TypeMeta, o.ObjectMeta = metav1.TypeMeta{}, aged(o.ObjectMeta)
	o.Status.Reset()
	var selector *networking.WorkloadSelector
	if s := o.Spec.WorkloadSelector; s != nil {
		selector = &networking.WorkloadSelector{Labels: s.Labels}
	}
	var egress []*networking.IstioEgressListener
	for _, l := range o.Spec.Egress {
		kept := &networking.IstioEgressListener{Hosts: l.Hosts}
		if l.Port != nil {
			kept.Port = &networking.SidecarPort{Number: l.Port.Number}
		}
		egress = append(egress, kept)
	}
	o.Spec.Reset()
	o.Spec.WorkloadSelector, o.Spec.Egress = selector, egress
}
