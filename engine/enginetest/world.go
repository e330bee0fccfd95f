// Package enginetest makes inputs for tests and benchmarks: clusters with a mesh,
// gateways and many services, without files.
package enginetest

import (
	"fmt"
	"slices"
	"strings"
	"time"

	admissionv1 "k8s.io/api/admissionregistration/v1"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	endpointv1 "k8s.io/api/discovery/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"

	commonv1 "github.com/meshctl/meshctl/engine/api/common/v1"
	networkingv1 "github.com/meshctl/meshctl/engine/api/networking/v1"
	"github.com/meshctl/meshctl/engine/snapshot"
)

// Size is how large a world is.
type Size struct {
	// Services per cluster, and Clusters.
	Services, Clusters int
	// FederateEvery nth service has the label federated=true.
	FederateEvery int
	// Policies: that many TrafficPolicies and as many AccessPolicies, one on
	// each of as many services.
	Policies int
	// Pods are behind each service, each an endpoint; one if 0.
	Pods int
	// Members of the VirtualMesh are the first clusters; all if 0.
	Members int
}

// endpointsPerSlice is how many endpoints Kubernetes puts into an EndpointSlice
// (--max-endpoints-per-slice of kube-controller-manager).
const endpointsPerSlice = 100

// Namespace is where services live; there is one for every hundred.
func Namespace(service int) string { return fmt.Sprintf("team-%03d", service/100) }

// Service is the name of the nth service of a cluster.
func Service(n int) string { return fmt.Sprintf("service-%05d", n) }

// Cluster is the name of the nth cluster.
func Cluster(n int) string { return fmt.Sprintf("cluster-%02d", n+1) }

// World makes an input of the given size: one VirtualMesh over all clusters
// federates every service that is labelled so.
func World(size Size) *snapshot.Input {
	in := &snapshot.Input{Management: &snapshot.Management{Namespace: snapshot.DefaultNamespace}}
	vm := &networkingv1.VirtualMesh{
		ObjectMeta: meta("virtual-mesh", snapshot.DefaultNamespace, nil),
		Spec: networkingv1.VirtualMeshSpec{Federation: &networkingv1.Federation{Selectors: []networkingv1.FederationSelector{{
			DestinationSelectors: []commonv1.DestinationSelector{{KubeServiceMatcher: &commonv1.KubeServiceMatcher{
				Labels: map[string]string{"federated": "true"},
			}}},
		}}}},
	}
	for c := range size.Clusters {
		in.Clusters = append(in.Clusters, NumberedCluster(c, size))
		if size.Members > 0 && c >= size.Members {
			continue
		}
		vm.Spec.Meshes = append(vm.Spec.Meshes, commonv1.ObjectRef{
			Name: "istiod-istio-system-" + Cluster(c), Namespace: snapshot.DefaultNamespace,
		})
	}
	slices.SortFunc(in.Clusters, func(a, b *snapshot.Cluster) int { return strings.Compare(a.Name, b.Name) })
	in.Management.VirtualMeshes = []*networkingv1.VirtualMesh{vm}
	for i := range size.Policies {
		in.Management.TrafficPolicies = append(in.Management.TrafficPolicies, TrafficPolicy(i, i%size.Services, i/size.Services%size.Clusters, time.Second))
		in.Management.AccessPolicies = append(in.Management.AccessPolicies, AccessPolicy(i, i%size.Services, i/size.Services%size.Clusters))
	}
	return in
}

// TrafficPolicy is the nth: it sets a timeout for a service of a cluster, and
// sends half of its requests to subset v1.
func TrafficPolicy(n, service, cluster int, timeout time.Duration) *networkingv1.TrafficPolicy {
	to := networkingv1.KubeDestination{Name: Service(service), Namespace: Namespace(service), ClusterName: Cluster(cluster)}
	v1 := to
	v1.Subset = map[string]string{"version": "v1"}
	return &networkingv1.TrafficPolicy{
		ObjectMeta: meta(fmt.Sprintf("traffic-%05d", n), snapshot.DefaultNamespace, nil),
		Spec: networkingv1.TrafficPolicySpec{
			DestinationSelector: serviceSelector(service, cluster),
			Policy: &networkingv1.Policy{
				RequestTimeout: &metav1.Duration{Duration: timeout},
				TrafficShift: &networkingv1.MultiDestination{Destinations: []networkingv1.WeightedDestination{
					{Weight: 50, KubeService: &to}, {Weight: 50, KubeService: &v1},
				}},
			},
		},
	}
}

// AccessPolicy lets in the callers of a service's own namespace.
func AccessPolicy(n, service, cluster int) *networkingv1.AccessPolicy {
	return &networkingv1.AccessPolicy{
		ObjectMeta: meta(fmt.Sprintf("access-%05d", n), snapshot.DefaultNamespace, nil),
		Spec: networkingv1.AccessPolicySpec{
			DestinationSelector: serviceSelector(service, cluster),
			SourceSelector: []commonv1.IdentitySelector{{KubeServiceAccountRefs: &commonv1.KubeServiceAccountRefs{
				ServiceAccounts: []commonv1.ClusterObjectRef{{Name: "default", Namespace: Namespace(service), ClusterName: Cluster(cluster)}},
			}}},
		},
	}
}

func serviceSelector(service, cluster int) []commonv1.DestinationSelector {
	return []commonv1.DestinationSelector{{KubeServiceRefs: &commonv1.KubeServiceRefs{Services: []commonv1.ClusterObjectRef{
		{Name: Service(service), Namespace: Namespace(service), ClusterName: Cluster(cluster)},
	}}}}
}

// NumberedCluster is the nth of a world: istiod, an east-west gateway and the services.
func NumberedCluster(n int, size Size) *snapshot.Cluster {
	b := newBuilder(Cluster(n), n, Place{"istio-system", "istiod"})
	for s := range size.Services {
		labels := map[string]string{"app": Service(s)}
		if size.FederateEvery > 0 && s%size.FederateEvery == 0 {
			labels["federated"] = "true"
		}
		b.app(Namespace(s), Service(s), map[string]string{"app": Service(s), "version": "v1"}, labels, max(1, size.Pods))
	}
	b.sort()
	return b.c
}

// Place is where an object of a cluster is.
type Place struct{ Namespace, Name string }

// NamedCluster is the nth cluster of a world with names of its own: its control plane,
// beside which is a gateway, and its services.
func NamedCluster(n int, name string, istiod Place, services ...Place) *snapshot.Cluster {
	b := newBuilder(name, n, istiod)
	for _, s := range services {
		b.app(s.Namespace, s.Name, map[string]string{"app": s.Name}, nil, 1)
	}
	b.sort()
	return b.c
}

type builder struct {
	c *snapshot.Cluster
	// net is the second byte of addresses of pods: clusters that are far from each other in
	// order use the same addresses, as separate networks do.
	net int
	// pods counts them.
	pods int
}

// newBuilder begins with istiod and an east-west gateway.
func newBuilder(name string, n int, istiod Place) *builder {
	b := &builder{c: &snapshot.Cluster{Name: name, Sync: snapshot.Synced}, net: n % 250}
	b.istiod(istiod)
	b.c.Nodes = []*corev1.Node{{ObjectMeta: metav1.ObjectMeta{Name: "node-1", Labels: map[string]string{
		corev1.LabelTopologyRegion: "region-1", corev1.LabelTopologyZone: "region-1a",
	}}}}
	gateway := b.app(istiod.Namespace, "istio-eastwestgateway", map[string]string{"istio": "eastwestgateway"}, nil, 1)
	gateway.Spec.Type = corev1.ServiceTypeLoadBalancer
	gateway.Spec.Ports = []corev1.ServicePort{{Name: "tls", Port: 15443, Protocol: corev1.ProtocolTCP, TargetPort: intstr.FromInt32(15443)}}
	gateway.Status.LoadBalancer.Ingress = []corev1.LoadBalancerIngress{{IP: gatewayAddress(n)}}
	return b
}

func (b *builder) istiod(at Place) {
	labels := map[string]string{"app": "istiod", "istio.io/rev": "default"}
	b.c.Deployments = append(b.c.Deployments, &appsv1.Deployment{
		ObjectMeta: meta(at.Name, at.Namespace, labels),
		Spec: appsv1.DeploymentSpec{
			Selector: &metav1.LabelSelector{MatchLabels: labels},
			Template: corev1.PodTemplateSpec{
				ObjectMeta: metav1.ObjectMeta{Labels: labels},
				Spec: corev1.PodSpec{
					ServiceAccountName: "istiod",
					Containers: []corev1.Container{{
						Name: "discovery", Image: "docker.io/istio/pilot:1.31.1",
						Env: []corev1.EnvVar{{Name: "PILOT_SKIP_VALIDATE_TRUST_DOMAIN", Value: "true"}},
					}},
				},
			},
		},
	})
	b.c.MutatingWebhookConfigurations = append(b.c.MutatingWebhookConfigurations, &admissionv1.MutatingWebhookConfiguration{
		ObjectMeta: meta("istio-sidecar-injector", "", map[string]string{"app": "sidecar-injector", "istio.io/rev": "default"}),
		Webhooks: []admissionv1.MutatingWebhook{{
			Name:         "namespace.sidecar-injector.istio.io",
			ClientConfig: admissionv1.WebhookClientConfig{Service: &admissionv1.ServiceReference{Name: at.Name, Namespace: at.Namespace}},
		}},
	})
	b.c.ConfigMaps = append(b.c.ConfigMaps, &corev1.ConfigMap{
		ObjectMeta: meta("istio", at.Namespace, nil),
		Data: map[string]string{"mesh": "trustDomain: " + b.c.Name + ".example\n" +
			`defaultConfig: {proxyMetadata: {ISTIO_META_DNS_CAPTURE: "true"}}` + "\n"},
	})
}

// gatewayAddress is that of the east-west gateway of the nth cluster: in TEST-NET-1 of
// RFC 5737, and from the 255th on in the benchmarking network of RFC 2544.
func gatewayAddress(n int) string {
	if n < 254 {
		return fmt.Sprintf("192.0.2.%d", n+1)
	}
	return fmt.Sprintf("198.18.%d.%d", n/250, n%250+1)
}

// app adds a Deployment with its ReplicaSet and injected pods, and the Service
// and EndpointSlices before them.
func (b *builder) app(namespace, name string, podLabels, labels map[string]string, pods int) *corev1.Service {
	template := corev1.PodTemplateSpec{
		ObjectMeta: metav1.ObjectMeta{Labels: podLabels},
		Spec:       corev1.PodSpec{ServiceAccountName: "default", Containers: []corev1.Container{{Name: "app", Image: "registry.example/app:1"}}},
	}
	b.c.Deployments = append(b.c.Deployments, &appsv1.Deployment{
		ObjectMeta: meta(name, namespace, nil),
		Spec:       appsv1.DeploymentSpec{Selector: &metav1.LabelSelector{MatchLabels: podLabels}, Template: template},
	})
	b.c.ReplicaSets = append(b.c.ReplicaSets, &appsv1.ReplicaSet{ObjectMeta: owned(meta(name+"-1", namespace, nil), "Deployment", name)})
	injected := template.Spec.DeepCopy()
	injected.NodeName = "node-1"
	injected.Containers = append(injected.Containers, corev1.Container{Name: "istio-proxy", Image: "docker.io/istio/proxyv2:1.31.1"})
	var endpoints []endpointv1.Endpoint
	for n := range pods {
		b.pods++
		address := fmt.Sprintf("10.%d.%d.%d", b.net, b.pods/250, b.pods%250+1)
		pod := &corev1.Pod{
			ObjectMeta: owned(meta(fmt.Sprintf("%s-1-%d", name, n+1), namespace, podLabels), "ReplicaSet", name+"-1"),
			Spec:       *injected, Status: corev1.PodStatus{PodIP: address, Phase: corev1.PodRunning},
		}
		b.c.Pods = append(b.c.Pods, pod)
		endpoints = append(endpoints, endpointv1.Endpoint{
			Addresses: []string{address}, NodeName: new("node-1"), Conditions: endpointv1.EndpointConditions{Ready: new(true)},
			TargetRef: &corev1.ObjectReference{Kind: "Pod", Name: pod.Name, Namespace: namespace},
		})
	}
	service := &corev1.Service{
		ObjectMeta: meta(name, namespace, labels),
		Spec: corev1.ServiceSpec{
			Selector: podLabels, Type: corev1.ServiceTypeClusterIP,
			Ports: []corev1.ServicePort{{Name: "http", Port: 8080, Protocol: corev1.ProtocolTCP, TargetPort: intstr.FromInt32(8080)}},
		},
	}
	b.c.Services = append(b.c.Services, service)
	number := 0
	for slice := range slices.Chunk(endpoints, endpointsPerSlice) {
		number++
		b.c.EndpointSlices = append(b.c.EndpointSlices, &endpointv1.EndpointSlice{
			ObjectMeta:  meta(fmt.Sprintf("%s-%d", name, number), namespace, map[string]string{endpointv1.LabelServiceName: name}),
			AddressType: endpointv1.AddressTypeIPv4,
			Endpoints:   slice,
			Ports:       []endpointv1.EndpointPort{{Name: new("http"), Port: new(int32(8080)), Protocol: new(corev1.ProtocolTCP)}},
		})
	}
	return service
}

func (b *builder) sort() {
	byName(b.c.Deployments)
	byName(b.c.ReplicaSets)
	byName(b.c.Pods)
	byName(b.c.Services)
	byName(b.c.EndpointSlices)
}

func byName[T metav1.Object](list []T) {
	slices.SortFunc(list, func(a, b T) int {
		if c := strings.Compare(a.GetNamespace(), b.GetNamespace()); c != 0 {
			return c
		}
		return strings.Compare(a.GetName(), b.GetName())
	})
}

func meta(name, namespace string, labels map[string]string) metav1.ObjectMeta {
	return metav1.ObjectMeta{Name: name, Namespace: namespace, Labels: labels}
}

func owned(m metav1.ObjectMeta, kind, name string) metav1.ObjectMeta {
	m.OwnerReferences = []metav1.OwnerReference{{APIVersion: "apps/v1", Kind: kind, Name: name, Controller: new(true)}}
	return m
}
