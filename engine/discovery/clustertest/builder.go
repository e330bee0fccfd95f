// Package clustertest builds clusters with Istio in code, for tests of what is discovered in them.
package clustertest

import (
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	endpointv1 "k8s.io/api/discovery/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"

	"github.com/meshctl/meshctl/engine/snapshot"
)

// Builder builds a cluster in code, for what needs many objects.
type Builder struct{ *snapshot.Cluster }

// New returns a synced cluster without objects, whose webhook configurations are not known.
func New(name string) Builder {
	return Builder{&snapshot.Cluster{Name: name, Sync: snapshot.Synced, WebhooksUnknown: true}}
}

// Epoch is when every object was made, plus what a test adds.
var Epoch = metav1.NewTime(time.Date(2030, 1, 2, 3, 4, 5, 0, time.UTC))

// Istiod adds a control plane of Istio with its settings.
func (b Builder) Istiod(revision string) *appsv1.Deployment {
	name, config := "istiod", "istio"
	if revision != "default" {
		name, config = name+"-"+revision, config+"-"+revision
	}
	labels := map[string]string{"app": "istiod", "istio.io/rev": revision}
	d := &appsv1.Deployment{
		ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: "istio-system", Labels: labels},
		Spec: appsv1.DeploymentSpec{
			Selector: &metav1.LabelSelector{MatchLabels: labels},
			Template: corev1.PodTemplateSpec{
				ObjectMeta: metav1.ObjectMeta{Labels: labels},
				Spec: corev1.PodSpec{
					ServiceAccountName: name,
					Containers:         []corev1.Container{{Name: "discovery", Image: "registry.example/istio/pilot:1.31.1"}},
				},
			},
		},
	}
	b.Deployments = append(b.Deployments, d)
	b.ConfigMaps = append(b.ConfigMaps, &corev1.ConfigMap{
		ObjectMeta: metav1.ObjectMeta{Name: config, Namespace: "istio-system"},
		Data:       map[string]string{"mesh": "trustDomain: cluster.local\n"},
	})
	return d
}

// Node adds a Node.
func (b Builder) Node(name string, labels map[string]string, addresses ...corev1.NodeAddress) *corev1.Node {
	n := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: name, Labels: labels}, Status: corev1.NodeStatus{Addresses: addresses}}
	b.Nodes = append(b.Nodes, n)
	return n
}

// Deployment adds a Deployment with its ReplicaSet.
func (b Builder) Deployment(namespace, name string, labels map[string]string) *appsv1.Deployment {
	d := &appsv1.Deployment{
		ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: namespace},
		Spec:       appsv1.DeploymentSpec{Template: corev1.PodTemplateSpec{ObjectMeta: metav1.ObjectMeta{Labels: labels}}},
	}
	b.Deployments = append(b.Deployments, d)
	b.ReplicaSets = append(b.ReplicaSets, &appsv1.ReplicaSet{ObjectMeta: metav1.ObjectMeta{
		Name: name + "-rs", Namespace: namespace, OwnerReferences: Owner("apps/v1", "Deployment", name),
	}})
	return d
}

// Pod adds a pod of a Deployment, injected by the default revision.
func (b Builder) Pod(d *appsv1.Deployment, name, node string) *corev1.Pod {
	p := &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{
			Name: name, Namespace: d.Namespace, CreationTimestamp: Epoch,
			Labels:          d.Spec.Template.Labels,
			Annotations:     map[string]string{"istio.io/rev": "default"},
			OwnerReferences: Owner("apps/v1", "ReplicaSet", d.Name+"-rs"),
		},
		Spec: corev1.PodSpec{
			NodeName: node,
			Containers: []corev1.Container{
				{Name: "app", Image: "registry.example/app:1"},
				{Name: "istio-proxy", Image: "registry.example/istio/proxyv2:1.31.1"},
			},
		},
	}
	b.Pods = append(b.Pods, p)
	return p
}

// Service adds a Service with one port.
func (b Builder) Service(namespace, name string, selector map[string]string) *corev1.Service {
	s := &corev1.Service{
		ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: namespace, Labels: map[string]string{"service": name}},
		Spec: corev1.ServiceSpec{
			Selector: selector,
			Type:     corev1.ServiceTypeClusterIP,
			Ports:    []corev1.ServicePort{{Name: "http", Port: 9080, Protocol: corev1.ProtocolTCP, TargetPort: intstr.FromInt32(9080)}},
		},
	}
	b.Services = append(b.Services, s)
	return s
}

// Slice adds an EndpointSlice of a Service, one endpoint for each pod, and gives the pods
// its addresses.
func (b Builder) Slice(s *corev1.Service, name string, family endpointv1.AddressType, endpoints ...endpointv1.Endpoint) *endpointv1.EndpointSlice {
	out := &endpointv1.EndpointSlice{
		ObjectMeta:  metav1.ObjectMeta{Name: name, Namespace: s.Namespace, Labels: map[string]string{endpointv1.LabelServiceName: s.Name}},
		AddressType: family,
		Endpoints:   endpoints,
		Ports:       []endpointv1.EndpointPort{{Name: new("http"), Port: new(int32(9080)), Protocol: new(corev1.ProtocolTCP)}},
	}
	b.EndpointSlices = append(b.EndpointSlices, out)
	for _, e := range endpoints {
		for _, p := range b.Pods {
			if e.TargetRef != nil && p.Namespace == s.Namespace && p.Name == e.TargetRef.Name {
				p.Status.PodIPs = append(p.Status.PodIPs, corev1.PodIP{IP: e.Addresses[0]})
			}
		}
	}
	return out
}

// Endpoint is a ready one of a pod.
func Endpoint(address, pod, node string) endpointv1.Endpoint {
	return endpointv1.Endpoint{
		Addresses: []string{address}, NodeName: new(node),
		Conditions: endpointv1.EndpointConditions{Ready: new(true)},
		TargetRef:  &corev1.ObjectReference{Kind: "Pod", Name: pod},
	}
}

// Owner makes an object the controller of another one.
func Owner(apiVersion, kind, name string) []metav1.OwnerReference {
	return []metav1.OwnerReference{{APIVersion: apiVersion, Kind: kind, Name: name, Controller: new(true)}}
}
