package engine_test

import (
	"fmt"
	"slices"

	networking "istio.io/api/networking/v1alpha3"
	security "istio.io/api/security/v1beta1"
	typev1beta1 "istio.io/api/type/v1beta1"
	istionetworkingv1 "istio.io/client-go/pkg/apis/networking/v1"
	istiosecurityv1 "istio.io/client-go/pkg/apis/security/v1"
	kubenetworkingv1 "k8s.io/api/networking/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	gatewayv1 "github.com/meshctl/meshctl/engine/api/gateway/v1"
	"github.com/meshctl/meshctl/engine/enginetest"
	"github.com/meshctl/meshctl/engine/snapshot"
)

// changeHandWritten adds an object that a user wrote for a mesh, or takes one kind of
// them away, or changes whether they are refused.
func (w *randomWorld) changeHandWritten() {
	at, n := w.r.Intn(len(w.base.Clusters)), w.r.Intn(randomServices)
	base, c := *w.base, *w.base.Clusters[at]
	w.n++
	meta := metav1.ObjectMeta{Name: fmt.Sprintf("mine-%03d", w.n), Namespace: enginetest.Namespace(n)}
	host := []string{enginetest.Service(n), "*.svc.cluster.local", "*", "*.global", virtualHost(w.r)}[w.r.Intn(5)]
	exportTo := [][]string{nil, {"."}, {"*"}, {"~"}, {enginetest.Namespace(w.r.Intn(randomServices)), "."}}[w.r.Intn(5)]
	if w.r.Intn(4) == 0 {
		meta.Namespace = "istio-system"
	}
	add := func(o snapshot.APIObject) {
		kind, _ := snapshot.KindOfObject(o)
		c.OfMeshes[kind] = append(slices.Clip(c.OfMeshes[kind]), o)
	}
	switch w.r.Intn(10) {
	case 0:
		add(&istionetworkingv1.VirtualService{ObjectMeta: meta, Spec: networking.VirtualService{Hosts: []string{host}, ExportTo: exportTo}})
	case 1:
		add(&istionetworkingv1.DestinationRule{ObjectMeta: meta, Spec: networking.DestinationRule{Host: host, ExportTo: exportTo, TrafficPolicy: w.drawSettings()}})
	case 2:
		add(&istiosecurityv1.AuthorizationPolicy{ObjectMeta: meta, Spec: security.AuthorizationPolicy{
			Action:   []security.AuthorizationPolicy_Action{security.AuthorizationPolicy_ALLOW, security.AuthorizationPolicy_DENY}[w.r.Intn(2)],
			Selector: &typev1beta1.WorkloadSelector{MatchLabels: map[string]string{"app": enginetest.Service(n)}},
		}})
	case 3:
		add(&istionetworkingv1.Sidecar{ObjectMeta: meta, Spec: networking.Sidecar{
			WorkloadSelector: &networking.WorkloadSelector{Labels: map[string]string{"app": enginetest.Service(n)}},
		}})
	case 4:
		for _, kind := range []snapshot.Kind{snapshot.VirtualService, snapshot.AuthorizationPolicy, snapshot.Sidecar, snapshot.ServiceEntry, snapshot.BackendTLSPolicy, snapshot.PeerAuthentication, snapshot.HTTPRoute, snapshot.RequestAuthentication} {
			c.OfMeshes[kind] = nil
		}
		c.NetworkPolicies = nil
	case 5:
		add(&istionetworkingv1.ServiceEntry{ObjectMeta: meta, Spec: networking.ServiceEntry{Hosts: []string{virtualHost(w.r)}, ExportTo: exportTo}})
	case 6:
		target := gatewayv1.PolicyTarget{Kind: "Service", Name: enginetest.Service(n)}
		if names := []string{"http", "none"}; w.r.Intn(2) == 0 {
			target.SectionName = &names[w.r.Intn(2)]
		}
		add(&gatewayv1.BackendTLSPolicy{ObjectMeta: meta, Spec: gatewayv1.BackendTLSPolicySpec{TargetRefs: []gatewayv1.PolicyTarget{target}}})
	case 7:
		c.NetworkPolicies = append(slices.Clip(c.NetworkPolicies), &kubenetworkingv1.NetworkPolicy{ObjectMeta: meta, Spec: kubenetworkingv1.NetworkPolicySpec{
			PodSelector: metav1.LabelSelector{MatchLabels: map[string]string{"app": enginetest.Service(n)}},
			PolicyTypes: []kubenetworkingv1.PolicyType{kubenetworkingv1.PolicyTypeIngress, kubenetworkingv1.PolicyTypeEgress}[:1+w.r.Intn(2)],
		}})
	case 8:
		w.addRarer(meta, enginetest.Service(n), exportTo, add)
	default:
		base.RefuseIntersecting = !base.RefuseIntersecting
	}
	base.Clusters = slices.Clone(base.Clusters)
	base.Clusters[at] = &c
	w.base = &base
}

// drawSettings draws what a DestinationRule sets beside its host, which is often nothing.
func (w *randomWorld) drawSettings() *networking.TrafficPolicy {
	modes := []networking.ClientTLSSettings_TLSmode{
		networking.ClientTLSSettings_DISABLE, networking.ClientTLSSettings_SIMPLE, networking.ClientTLSSettings_ISTIO_MUTUAL,
	}
	switch w.r.Intn(5) {
	case 0:
		return &networking.TrafficPolicy{Tls: &networking.ClientTLSSettings{Mode: modes[w.r.Intn(len(modes))]}}
	case 1:
		return &networking.TrafficPolicy{LoadBalancer: &networking.LoadBalancerSettings{
			LbPolicy: &networking.LoadBalancerSettings_Simple{Simple: networking.LoadBalancerSettings_PASSTHROUGH},
		}}
	case 2:
		return &networking.TrafficPolicy{OutlierDetection: &networking.OutlierDetection{}, ProxyProtocol: &networking.TrafficPolicy_ProxyProtocol{}}
	}
	return nil
}
