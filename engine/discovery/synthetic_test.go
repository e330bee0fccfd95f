package discovery

import (
	"fmt"
	"math/rand"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	endpointv1 "k8s.io/api/discovery/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"

	"github.com/meshctl/meshctl/engine/snapshot"
)

// clusterBuilder builds clusters in code, for what needs many objects.
type clusterBuilder struct{ *snapshot.Cluster }

func newCluster(name string) clusterBuilder {
	return clusterBuilder{&snapshot.Cluster{Name: name, Sync: snapshot.Synced, WebhooksUnknown: true}}
}

// epoch is when every object was made, plus what a test adds.
var epoch = metav1.NewTime(time.Date(2030, 1, 2, 3, 4, 5, 0, time.UTC))

func (b clusterBuilder) istiod(revision string) *appsv1.Deployment {
	name, config := "istiod", "istio"
	if revision != istioDefault {
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

func (b clusterBuilder) node(name string, labels map[string]string, addresses ...corev1.NodeAddress) *corev1.Node {
	n := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: name, Labels: labels}, Status: corev1.NodeStatus{Addresses: addresses}}
	b.Nodes = append(b.Nodes, n)
	return n
}

// deployment adds a Deployment with its ReplicaSet.
func (b clusterBuilder) deployment(namespace, name string, labels map[string]string) *appsv1.Deployment {
	d := &appsv1.Deployment{
		ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: namespace},
		Spec:       appsv1.DeploymentSpec{Template: corev1.PodTemplateSpec{ObjectMeta: metav1.ObjectMeta{Labels: labels}}},
	}
	b.Deployments = append(b.Deployments, d)
	b.ReplicaSets = append(b.ReplicaSets, &appsv1.ReplicaSet{ObjectMeta: metav1.ObjectMeta{
		Name: name + "-rs", Namespace: namespace, OwnerReferences: owner("apps/v1", "Deployment", name),
	}})
	return d
}

// pod adds a pod of a Deployment, injected by the default revision.
func (b clusterBuilder) pod(d *appsv1.Deployment, name, node string) *corev1.Pod {
	p := &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{
			Name: name, Namespace: d.Namespace, CreationTimestamp: epoch,
			Labels:          d.Spec.Template.Labels,
			Annotations:     map[string]string{"istio.io/rev": "default"},
			OwnerReferences: owner("apps/v1", "ReplicaSet", d.Name+"-rs"),
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

func (b clusterBuilder) service(namespace, name string, selector map[string]string) *corev1.Service {
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

// slice adds an EndpointSlice of a Service, one endpoint for each pod, and gives the pods
// its addresses.
func (b clusterBuilder) slice(s *corev1.Service, name string, family endpointv1.AddressType, endpoints ...endpointv1.Endpoint) *endpointv1.EndpointSlice {
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

func endpoint(address, pod, node string) endpointv1.Endpoint {
	return endpointv1.Endpoint{
		Addresses: []string{address}, NodeName: new(node),
		Conditions: endpointv1.EndpointConditions{Ready: new(true)},
		TargetRef:  &corev1.ObjectReference{Kind: "Pod", Name: pod},
	}
}

func owner(apiVersion, kind, name string) []metav1.OwnerReference {
	return []metav1.OwnerReference{{APIVersion: apiVersion, Kind: kind, Name: name, Controller: new(true)}}
}

// manyServices is a cluster with n services of three workloads each second,
// in namespaces of 100, and as many ReplicaSets of the past.
func manyServices(n int) *snapshot.Cluster {
	b := newCluster("cluster-1")
	b.istiod(istioDefault)
	for i := range 10 {
		b.node(fmt.Sprintf("node-%d", i), map[string]string{
			corev1.LabelTopologyRegion: "us-east-1", corev1.LabelTopologyZone: fmt.Sprintf("us-east-1%c", 'a'+i%3),
		}, corev1.NodeAddress{Type: corev1.NodeExternalIP, Address: fmt.Sprintf("192.0.2.%d", i)})
	}
	for i := range n {
		namespace, app := fmt.Sprintf("ns-%03d", i/100), fmt.Sprintf("svc-%05d", i)
		s := b.service(namespace, app, map[string]string{"app": app})
		var endpoints []endpointv1.Endpoint
		for v := range 1 + i%2*2 {
			version := fmt.Sprintf("v%d", v+1)
			d := b.deployment(namespace, app+"-"+version, map[string]string{"app": app, "version": version, "team": "all"})
			b.ReplicaSets = append(b.ReplicaSets, &appsv1.ReplicaSet{ObjectMeta: metav1.ObjectMeta{
				Name: d.Name + "-past", Namespace: namespace, OwnerReferences: owner("apps/v1", "Deployment", d.Name),
			}})
			node := fmt.Sprintf("node-%d", (i+v)%10)
			p := b.pod(d, d.Name+"-pod", node)
			endpoints = append(endpoints, endpoint(fmt.Sprintf("10.%d.%d.%d", v, i/256%256, i%256), p.Name, node))
		}
		b.slice(s, app+"-s", endpointv1.AddressTypeIPv4, endpoints...)
	}
	return b.Cluster
}

// shuffled is a copy of c with every list in another order.
func shuffled(c *snapshot.Cluster, seed int64) *snapshot.Cluster {
	r := rand.New(rand.NewSource(seed))
	out := *c
	out.Deployments = shuffle(r, c.Deployments)
	out.DaemonSets = shuffle(r, c.DaemonSets)
	out.StatefulSets = shuffle(r, c.StatefulSets)
	out.ReplicaSets = shuffle(r, c.ReplicaSets)
	out.Pods = shuffle(r, c.Pods)
	out.Services = shuffle(r, c.Services)
	out.EndpointSlices = shuffle(r, c.EndpointSlices)
	out.Nodes = shuffle(r, c.Nodes)
	out.ConfigMaps = shuffle(r, c.ConfigMaps)
	return &out
}

func shuffle[T any](r *rand.Rand, list []T) []T {
	out := append([]T(nil), list...)
	r.Shuffle(len(out), func(i, j int) { out[i], out[j] = out[j], out[i] })
	return out
}

// copied is a deep copy of c.
func copied(c *snapshot.Cluster) *snapshot.Cluster {
	out := *c
	out.Deployments = copies(c.Deployments)
	out.DaemonSets = copies(c.DaemonSets)
	out.StatefulSets = copies(c.StatefulSets)
	out.ReplicaSets = copies(c.ReplicaSets)
	out.Pods = copies(c.Pods)
	out.Services = copies(c.Services)
	out.EndpointSlices = copies(c.EndpointSlices)
	out.Nodes = copies(c.Nodes)
	out.ConfigMaps = copies(c.ConfigMaps)
	return &out
}

func copies[T interface{ DeepCopy() T }](list []T) []T {
	var out []T
	for _, o := range list {
		out = append(out, o.DeepCopy())
	}
	return out
}
