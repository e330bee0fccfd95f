package istio

import (
	networking "istio.io/api/networking/v1alpha3"
	security "istio.io/api/security/v1beta1"
	istionetworkingv1 "istio.io/client-go/pkg/apis/networking/v1"
	istiosecurityv1 "istio.io/client-go/pkg/apis/security/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	gatewayv1 "github.com/meshctl/meshctl/engine/api/gateway/v1"
	"github.com/meshctl/meshctl/engine/snapshot"
)

// reads are the kinds that are inspected. What users wrote about hosts is compared by what it is about, not by what it says; what
// decides about calls is evaluated (see guard).
var reads = map[snapshot.Kind]func(snapshot.APIObject){
	snapshot.VirtualService:        strip(stripVirtualService),
	snapshot.ServiceEntry:          strip(stripServiceEntry),
	snapshot.DestinationRule:       strip(stripDestinationRule),
	snapshot.AuthorizationPolicy:   strip(stripAuthorizationPolicy),
	snapshot.PeerAuthentication:    strip(stripPeerAuthentication),
	snapshot.Sidecar:               strip(stripSidecar),
	snapshot.RequestAuthentication: strip(stripRequestAuthentication),
	snapshot.EnvoyFilter:           strip(stripEnvoyFilter),
	snapshot.WasmPlugin:            strip(stripWasmPlugin),
	snapshot.TrafficExtension:      strip(stripTrafficExtension),
	snapshot.Telemetry:             strip(stripTelemetry),
	snapshot.Gateway:               strip(stripGateway),
	snapshot.WorkloadEntry:         strip(stripWorkloadEntry),
	snapshot.HTTPRoute:             strip(func(o *gatewayv1.HTTPRoute) { o.TypeMeta, o.ObjectMeta = metav1.TypeMeta{}, aged(o.ObjectMeta) }),
	snapshot.GRPCRoute:             strip(func(o *gatewayv1.GRPCRoute) { o.TypeMeta, o.ObjectMeta = metav1.TypeMeta{}, aged(o.ObjectMeta) }),
	snapshot.GatewayTCPRoute:       strip(func(o *gatewayv1.TCPRoute) { o.TypeMeta, o.ObjectMeta = metav1.TypeMeta{}, aged(o.ObjectMeta) }),
	snapshot.KubeGateway:           strip(stripKubeGateway),
	snapshot.ListenerSet:           strip(stripListenerSet),
	snapshot.ReferenceGrant:        strip(func(o *gatewayv1.ReferenceGrant) { o.TypeMeta, o.ObjectMeta = metav1.TypeMeta{}, named(o.ObjectMeta) }),
	snapshot.BackendTLSPolicy:      strip(stripBackendTLS),
	snapshot.Ingress:               strip(stripIngress),
	snapshot.IngressClass:          strip(stripIngressClass),
	snapshot.TLSRoute:              strip(func(o *gatewayv1.TLSRoute) { o.TypeMeta, o.ObjectMeta = metav1.TypeMeta{}, aged(o.ObjectMeta) }),
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
	return metav1.ObjectMeta{Namespace: o.Namespace, Name: o.Name, Labels: onlyRevision(o.Labels)}
}

// aged are name and age, of objects of which the mesh uses the older of two.
func aged(o metav1.ObjectMeta) metav1.ObjectMeta {
	return metav1.ObjectMeta{Namespace: o.Namespace, Name: o.Name, Labels: onlyRevision(o.Labels), CreationTimestamp: o.CreationTimestamp}
}

func stripVirtualService(o *istionetworkingv1.VirtualService) {
	o.TypeMeta, o.ObjectMeta = metav1.TypeMeta{}, aged(o.ObjectMeta)
	o.Status.Reset()
	for _, r := range o.Spec.Http {
		r.CorsPolicy, r.Retries, r.Mirror, r.Mirrors, r.MirrorPercent, r.MirrorPercentage = nil, nil, nil, nil, nil, nil //nolint:staticcheck // users may write it
		// Of these only matters that they are there.
		only(&r.Redirect)
		if r.DirectResponse != nil {
			r.DirectResponse.Body = nil
		}
		only(&r.Rewrite)
	}
}

// only leaves of a part that it is there.
func only[T any](part **T) {
	if *part != nil {
		*part = new(T)
	}
}

func stripGateway(o *istionetworkingv1.Gateway) {
	o.TypeMeta, o.ObjectMeta = metav1.TypeMeta{}, aged(o.ObjectMeta)
	o.Status.Reset()
	for i, s := range o.Spec.Servers {
		kept := &networking.Server{Hosts: s.Hosts}
		if s.Port != nil {
			kept.Port = &networking.Port{Number: s.Port.Number, Protocol: s.Port.Protocol}
		}
		if s.Tls != nil {
			kept.Tls = &networking.ServerTLSSettings{Mode: s.Tls.Mode, HttpsRedirect: s.Tls.HttpsRedirect}
		}
		o.Spec.Servers[i] = kept
	}
}

func stripServiceEntry(o *istionetworkingv1.ServiceEntry) {
	o.TypeMeta, o.ObjectMeta = metav1.TypeMeta{}, aged(o.ObjectMeta)
	o.Status.Reset()
	hosts, exportTo, addresses, ports, selector := o.Spec.Hosts, o.Spec.ExportTo, o.Spec.Addresses, o.Spec.Ports, o.Spec.WorkloadSelector
	o.Spec.Reset()
	o.Spec.Hosts, o.Spec.ExportTo = hosts, exportTo
	if len(addresses) == 0 && selector == nil { // then its ports take no connections of others
		return
	}
	o.Spec.Addresses, o.Spec.WorkloadSelector = addresses, selector
	for _, p := range ports {
		o.Spec.Ports = append(o.Spec.Ports, &networking.ServicePort{Number: p.GetNumber(), Protocol: p.GetProtocol(), TargetPort: p.GetTargetPort()})
	}
}

func stripDestinationRule(o *istionetworkingv1.DestinationRule) {
	o.TypeMeta, o.ObjectMeta = metav1.TypeMeta{}, aged(o.ObjectMeta)
	o.Status.Reset()
	host, exportTo, selector, subsets, policy := o.Spec.Host, o.Spec.ExportTo, o.Spec.WorkloadSelector, o.Spec.Subsets, o.Spec.TrafficPolicy
	o.Spec.Reset()
	o.Spec.Host, o.Spec.ExportTo, o.Spec.WorkloadSelector, o.Spec.TrafficPolicy = host, exportTo, selector, onlyTLS(policy)
	for _, s := range subsets {
		o.Spec.Subsets = append(o.Spec.Subsets, &networking.Subset{Name: s.Name, Labels: s.Labels, TrafficPolicy: onlyTLS(s.TrafficPolicy)})
	}
}

// onlyTLS leaves of a policy the TLS modes, for the service and its ports, and what callers ask of the other side.
func onlyTLS(p *networking.TrafficPolicy) *networking.TrafficPolicy {
	if p == nil {
		return nil
	}
	out := &networking.TrafficPolicy{Tls: onlyModes(p.Tls)}
	for _, port := range p.PortLevelSettings {
		kept := &networking.TrafficPolicy_PortTrafficPolicy{Tls: onlyModes(port.GetTls())}
		if number := port.GetPort().GetNumber(); number != 0 {
			kept.Port = &networking.PortSelector{Number: number}
		}
		out.PortLevelSettings = append(out.PortLevelSettings, kept)
	}
	return out
}

func onlyModes(t *networking.ClientTLSSettings) *networking.ClientTLSSettings {
	if t == nil {
		return nil
	}
	return &networking.ClientTLSSettings{Mode: t.Mode, Sni: t.Sni, SubjectAltNames: t.SubjectAltNames}
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
		kept := &networking.IstioEgressListener{Hosts: l.Hosts, Bind: l.Bind, CaptureMode: l.CaptureMode}
		if l.Port != nil {
			kept.Port = &networking.SidecarPort{Number: l.Port.Number}
		}
		egress = append(egress, kept)
	}
	var ingress []*networking.IstioIngressListener
	for _, l := range o.Spec.Ingress {
		if l.Port != nil {
			ingress = append(ingress, &networking.IstioIngressListener{
				Port: &networking.SidecarPort{Number: l.Port.Number, Protocol: l.Port.Protocol}, DefaultEndpoint: l.DefaultEndpoint,
			})
		}
	}
	outbound := o.Spec.OutboundTrafficPolicy
	o.Spec.Reset()
	o.Spec.WorkloadSelector, o.Spec.Egress, o.Spec.Ingress = selector, egress, ingress
	if outbound != nil {
		only(&outbound.EgressProxy)
		o.Spec.OutboundTrafficPolicy = &networking.OutboundTrafficPolicy{Mode: outbound.Mode, EgressProxy: outbound.EgressProxy}
	}
}

// stripRequestAuthentication keeps where tokens are, and neither who issues them nor with which keys.
func stripRequestAuthentication(o *istiosecurityv1.RequestAuthentication) {
	o.TypeMeta, o.ObjectMeta = metav1.TypeMeta{}, named(o.ObjectMeta)
	o.Status.Reset()
	for i, r := range o.Spec.JwtRules {
		kept := &security.JWTRule{FromParams: r.GetFromParams(), FromCookies: r.GetFromCookies()}
		for _, h := range r.GetFromHeaders() {
			kept.FromHeaders = append(kept.FromHeaders, &security.JWTHeader{Name: h.GetName(), Prefix: h.GetPrefix()})
		}
		o.Spec.JwtRules[i] = kept
	}
}
