package engine_test

import (
	"fmt"
	"slices"

	networking "istio.io/api/networking/v1alpha3"
	security "istio.io/api/security/v1beta1"
	typev1beta1 "istio.io/api/type/v1beta1"
	istionetworkingv1 "istio.io/client-go/pkg/apis/networking/v1"
	istiosecurityv1 "istio.io/client-go/pkg/apis/security/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"

	gatewayv1 "github.com/meshctl/meshctl/engine/api/gateway/v1"
	"github.com/meshctl/meshctl/engine/enginetest"
	"github.com/meshctl/meshctl/engine/snapshot"
)

// changeSurroundings changes what decides beside our objects and those that users wrote: what the mesh reads, its defaults, and what pods
// and Services are.
func (w *randomWorld) changeSurroundings() {
	at := w.r.Intn(len(w.base.Clusters))
	c := *w.base.Clusters[at]
	switch w.r.Intn(4) {
	case 0:
		c = *w.withSelectors(&c)
	case 1:
		c = *withMeshConfig(&c, []string{"", "defaultServiceExportTo: ['.']\n", "defaultVirtualServiceExportTo: ['.']\n", "outboundTrafficPolicy: {mode: REGISTRY_ONLY}\n"}[w.r.Intn(4)])
	case 2:
		c = *w.withPod(&c)
	default:
		c = *w.withService(&c)
	}
	base := *w.base
	base.Clusters = slices.Clone(base.Clusters)
	base.Clusters[at] = &c
	w.base = &base
}

// withSelectors is a cluster whose namespaces have labels, of which its control planes read some.
func (w *randomWorld) withSelectors(c *snapshot.Cluster) *snapshot.Cluster {
	text := "discoverySelectors: [" + []string{
		"", "{matchLabels: {mesh: 'on'}}", "{matchLabels: {mesh: 'on'}}, {matchLabels: {own: 'true'}}", "{matchExpressions: [{key: mesh, operator: DoesNotExist}]}", "{matchExpressions: [{key: mesh, operator: Near}]}",
	}[w.r.Intn(5)] + "]\n"
	out := *withMeshConfig(c, text)
	out.Namespaces = []*corev1.Namespace{{ObjectMeta: metav1.ObjectMeta{Name: "istio-system", Labels: map[string]string{"own": fmt.Sprint(w.r.Intn(3) > 0)}}}}
	for n := range 2 { // the second one has no services
		name := enginetest.Namespace(100 * n)
		labels := map[string]string{"kubernetes.io/metadata.name": name}
		if value := []string{"", "on", "off"}[w.r.Intn(3)]; value != "" {
			labels["mesh"] = value
		}
		out.Namespaces = append(out.Namespaces, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name, Labels: labels}})
	}
	return &out
}

// withMeshConfig is a cluster whose meshes have other settings than those of a trust domain.
func withMeshConfig(c *snapshot.Cluster, text string) *snapshot.Cluster {
	out := *c
	out.ConfigMaps = slices.Clone(c.ConfigMaps)
	for i, m := range c.ConfigMaps {
		if m.Name == "istio" {
			out.ConfigMaps[i] = m.DeepCopy()
			out.ConfigMaps[i].Data = map[string]string{"mesh": "trustDomain: " + c.Name + ".example\n" + text}
		}
	}
	return &out
}

// withPod is a cluster in which a pod has no sidecar, or another owner, or passes its proxy by, or names its port.
func (w *randomWorld) withPod(c *snapshot.Cluster) *snapshot.Cluster {
	if len(c.Pods) == 0 {
		return c
	}
	out := *c
	out.Pods = slices.Clone(c.Pods)
	at := w.r.Intn(len(out.Pods))
	p := out.Pods[at].DeepCopy()
	out.Pods[at] = p
	switch w.r.Intn(5) {
	case 0:
		p.Spec.Containers = slices.DeleteFunc(p.Spec.Containers, func(c corev1.Container) bool { return c.Name == "istio-proxy" })
	case 1:
		p.OwnerReferences = nil
	case 2:
		p.OwnerReferences = []metav1.OwnerReference{{APIVersion: "example.com/v1", Kind: []string{"Rollout", "Job"}[w.r.Intn(2)], Name: "odd", Controller: new(true)}}
	case 3:
		p.Annotations = map[string]string{
			[]string{"traffic.sidecar.istio.io/excludeOutboundPorts", "traffic.sidecar.istio.io/excludeInboundPorts"}[w.r.Intn(2)]: []string{"8080", "any"}[w.r.Intn(2)],
		}
	default:
		p.Spec.SecurityContext = &corev1.PodSecurityContext{RunAsUser: new([]int64{1337, 1000}[w.r.Intn(2)])}
	}
	return &out
}

// withService is a cluster in which a Service is headless, has an address, names the port of its pods, or is exported to its namespace only.
func (w *randomWorld) withService(c *snapshot.Cluster) *snapshot.Cluster {
	if len(c.Services) == 0 {
		return c
	}
	out := *c
	out.Services = slices.Clone(c.Services)
	at := w.r.Intn(len(out.Services))
	s := out.Services[at].DeepCopy()
	out.Services[at] = s
	switch w.r.Intn(4) {
	case 0:
		s.Spec.ClusterIP = corev1.ClusterIPNone
	case 1:
		s.Spec.ClusterIP = fmt.Sprintf("10.96.0.%d", w.r.Intn(3))
	case 2:
		for i := range s.Spec.Ports {
			s.Spec.Ports[i].TargetPort = intstr.FromString("http")
		}
	default:
		s.Annotations = map[string]string{"networking.istio.io/exportTo": []string{".", "*", "~"}[w.r.Intn(3)]}
	}
	return &out
}

// addRarer draws objects of users that change answers, of kinds of which nothing is generated.
func (w *randomWorld) addRarer(meta metav1.ObjectMeta, service string, exportTo []string, add func(snapshot.APIObject)) {
	switch w.r.Intn(4) {
	case 0:
		modes := []security.PeerAuthentication_MutualTLS_Mode{security.PeerAuthentication_MutualTLS_STRICT, security.PeerAuthentication_MutualTLS_DISABLE, security.PeerAuthentication_MutualTLS_PERMISSIVE}
		mode := &security.PeerAuthentication_MutualTLS{Mode: modes[w.r.Intn(len(modes))]}
		o := &istiosecurityv1.PeerAuthentication{ObjectMeta: meta}
		if w.r.Intn(2) == 0 {
			o.Spec.Selector = &typev1beta1.WorkloadSelector{MatchLabels: map[string]string{"app": service}}
			o.Spec.PortLevelMtls = map[uint32]*security.PeerAuthentication_MutualTLS{8080: mode}
		} else {
			o.Spec.Mtls = mode
		}
		add(o)
	case 1:
		backend := gatewayv1.BackendRef{Name: enginetest.Service(w.r.Intn(randomServices)), Port: new(int32(8080))}
		route := &gatewayv1.HTTPRoute{ObjectMeta: meta}
		route.Spec.ParentRefs = []gatewayv1.ParentReference{{Kind: new("Service"), Group: new(""), Name: service}}
		route.Spec.Rules = []gatewayv1.HTTPRouteRule{{BackendRefs: []gatewayv1.BackendRef{backend}}}
		add(route)
	case 2:
		add(&istionetworkingv1.ServiceEntry{ObjectMeta: meta, Spec: networking.ServiceEntry{
			Hosts: []string{"database.example.com"}, ExportTo: exportTo, Addresses: []string{[]string{"10.96.0.1", "10.96.0.0/16", "none"}[w.r.Intn(3)]},
			Ports: []*networking.ServicePort{{Number: 8080, Name: "a", Protocol: []string{"TCP", "HTTP"}[w.r.Intn(2)]}},
		}})
	default:
		add(&istiosecurityv1.RequestAuthentication{ObjectMeta: meta, Spec: security.RequestAuthentication{JwtRules: []*security.JWTRule{{Issuer: "anyone"}}}})
	}
}
