package discovery_test

import (
	"encoding/json"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	endpointv1 "k8s.io/api/discovery/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"

	discoveryv1 "github.com/meshctl/meshctl/engine/api/discovery/v1"
	"github.com/meshctl/meshctl/engine/discovery"
	"github.com/meshctl/meshctl/engine/discovery/clustertest"
	"github.com/meshctl/meshctl/engine/snapshot"
)

// oneService is a cluster with a Service of one workload on one node.
func oneService() (clustertest.Builder, *appsv1.Deployment, *corev1.Service) {
	b := clustertest.New("cluster-1")
	b.Istiod("default")
	labels := map[string]string{"app": "a", "version": "v1"}
	d := b.Deployment("ns", "a-v1", labels)
	b.Pod(d, "a-v1-1", "node-1")
	return b, d, b.Service("ns", "a", map[string]string{"app": "a"})
}

// destination discovers the cluster and returns its only destination.
func destination(t *testing.T, b clustertest.Builder) *discoveryv1.KubeService {
	t.Helper()
	got := discovery.Discover(b.Cluster, options())
	require.Len(t, got.Destinations, 1)
	return got.Destinations[0].Spec.KubeService
}

func TestNothingIsFoundInNothing(t *testing.T) {
	t.Parallel()
	assert.Equal(t, &snapshot.Discovered{Cluster: "c"}, discovery.Discover(&snapshot.Cluster{Name: "c"}, options()))
}

func TestOwnership(t *testing.T) {
	t.Parallel()
	b, _, _ := oneService()
	for namespace, want := range map[string]string{"": "gloo-mesh", "elsewhere": "elsewhere"} {
		got := discovery.Discover(b.Cluster, discovery.Options{Detectors: detectors, Namespace: namespace})
		require.Len(t, got.Workloads, 1)
		for _, o := range []metav1.Object{got.Meshes[0], got.Workloads[0], got.Destinations[0]} {
			assert.Equal(t, want, o.GetNamespace())
			assert.Equal(t, map[string]string{
				"owner.discovery.mesh.gloo.solo.io":   want,
				"cluster.discovery.mesh.gloo.solo.io": "cluster-1",
			}, o.GetLabels())
			assert.Empty(t, o.GetAnnotations())
		}
		assert.Equal(t, want, got.Workloads[0].Spec.Mesh.Namespace)
		assert.Equal(t, want, got.Destinations[0].Spec.Mesh.Namespace)
	}
}

func TestOwners(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		owners []metav1.OwnerReference
		found  bool
	}{
		"of its ReplicaSet":     {clustertest.Owner("apps/v1", "ReplicaSet", "a-v1-rs"), true},
		"of an older version":   {clustertest.Owner("apps/v1beta1", "ReplicaSet", "a-v1-rs"), true},
		"of another ReplicaSet": {clustertest.Owner("apps/v1", "ReplicaSet", "other"), false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b, _, _ := oneService()
			b.Pods[0].OwnerReferences = c.owners
			got := discovery.Discover(b.Cluster, options())
			assert.Equal(t, c.found, len(got.Workloads) == 1)
			assert.Equal(t, c.found, len(got.Destinations) == 1)
		})
	}
}

// While a rollout goes from one revision to another, the youngest pod decides.
func TestYoungestPodDecides(t *testing.T) {
	t.Parallel()
	b, d, _ := oneService()
	b.Istiod("new")
	b.Pods[0].Name = "z-old"
	b.Pod(d, "a-old", "node-1")
	young := b.Pod(d, "m-young", "node-1")
	young.Annotations = map[string]string{"istio.io/rev": "new"}
	young.CreationTimestamp = metav1.NewTime(clustertest.Epoch.Add(time.Minute))
	plain := b.Pod(d, "n-youngest-without-sidecar", "node-1")
	plain.Spec.Containers = plain.Spec.Containers[:1]
	plain.CreationTimestamp = metav1.NewTime(clustertest.Epoch.Add(time.Hour))
	got := discovery.Discover(b.Cluster, options())
	require.Len(t, got.Workloads, 1)
	assert.Equal(t, "istiod-new-istio-system-cluster-1", got.Workloads[0].Spec.Mesh.Name)
	assert.Empty(t, got.Issues)
}

func TestSelection(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		selector map[string]string
		found    bool
	}{
		"one label":        {map[string]string{"app": "a"}, true},
		"both labels":      {map[string]string{"app": "a", "version": "v1"}, true},
		"another value":    {map[string]string{"app": "a", "version": "v2"}, false},
		"a label too many": {map[string]string{"app": "a", "team": ""}, false},
		"no selector":      {nil, false},
		"empty selector":   {map[string]string{}, false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b, _, s := oneService()
			s.Spec.Selector = c.selector
			assert.Equal(t, c.found, len(discovery.Discover(b.Cluster, options()).Destinations) == 1)
			s.Namespace = "elsewhere"
			assert.Empty(t, discovery.Discover(b.Cluster, options()).Destinations, "a Service selects in its namespace only")
		})
	}
}

func TestServicePorts(t *testing.T) {
	t.Parallel()
	b, _, s := oneService()
	s.Spec.Ports = []corev1.ServicePort{
		{Port: 80, Name: "http", Protocol: "TCP", AppProtocol: new("http2"), TargetPort: intstr.FromInt32(8080), NodePort: 30080},
		{Port: 81, TargetPort: intstr.FromString("admin")},
		{Port: 82},
	}
	assert.Equal(t, []discoveryv1.KubeServicePort{
		{Port: 80, Name: "http", Protocol: "TCP", AppProtocol: "http2", TargetPortNumber: 8080, NodePort: 30080},
		{Port: 81, TargetPortName: "admin"},
		{Port: 82, TargetPortNumber: 82},
	}, destination(t, b).Ports)
}

func TestEndpointSubsets(t *testing.T) {
	t.Parallel()
	b, _, s := oneService()
	b.Node("node-1", map[string]string{corev1.LabelFailureDomainBetaZone: "z1", "topology.istio.io/subzone": "rack"})
	unknown, notReady, stranger, zoned := clustertest.Endpoint("10.0.0.1", "a-v1-1", "node-1"), clustertest.Endpoint("10.0.0.2", "a-v1-1", "node-1"),
		clustertest.Endpoint("10.0.0.4", "stranger", "no-node"), clustertest.Endpoint("10.0.0.5", "a-v1-1", "node-1")
	unknown.Conditions.Ready = nil
	notReady.Conditions.Ready = new(false)
	zoned.Zone = new("z9")
	empty := endpointv1.Endpoint{}
	b.Slice(s, "s-2", endpointv1.AddressTypeIPv4, stranger, zoned, unknown, notReady, empty)
	b.Slice(s, "s-1", endpointv1.AddressTypeIPv4, unknown) // stands in both
	b.Slice(s, "s-6", endpointv1.AddressTypeIPv6, clustertest.Endpoint("fd00::1", "a-v1-1", "node-1"))
	b.Slice(s, "s-name", endpointv1.AddressTypeFQDN, clustertest.Endpoint("a.example", "a-v1-1", "node-1"))
	other := b.Slice(s, "s-other", endpointv1.AddressTypeIPv4, clustertest.Endpoint("10.0.0.9", "a-v1-1", "node-1"))
	other.Ports = []endpointv1.EndpointPort{{Name: new("b"), Port: new(int32(90))}, {Name: new("a"), Port: new(int32(90))}, {Name: new("every")}}
	unready := b.Slice(s, "s-unready", endpointv1.AddressTypeIPv4, notReady)
	unready.Ports = []endpointv1.EndpointPort{{Port: new(int32(1))}}

	labels := map[string]string{"app": "a", "version": "v1"}
	at := &discoveryv1.SubLocality{Zone: "z1", SubZone: "rack"}
	assert.Equal(t, []discoveryv1.EndpointSubset{
		{
			Endpoints: []discoveryv1.Endpoint{{IpAddress: "10.0.0.9", Labels: labels, SubLocality: at}},
			Ports:     []discoveryv1.EndpointPort{{Port: 90, Name: "a"}, {Port: 90, Name: "b"}},
		},
		{
			Endpoints: []discoveryv1.Endpoint{
				{IpAddress: "10.0.0.1", OtherAddresses: []string{"10.0.0.5", "fd00::1"}, Labels: labels, SubLocality: at},
			},
			Ports: []discoveryv1.EndpointPort{{Port: 9080, Name: "http", Protocol: "TCP"}},
		},
	}, destination(t, b).EndpointSubsets)
}

func TestOnlyAddressesOfPodsAreEndpoints(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		change func(*endpointv1.Endpoint)
		says   string
	}{
		"of no pod":                {func(e *endpointv1.Endpoint) { e.TargetRef, e.Addresses = nil, []string{"10.9.9.9"} }, "10.9.9.9"},
		"of something else":        {func(e *endpointv1.Endpoint) { e.TargetRef.Kind, e.Addresses = "Node", []string{"10.9.9.9"} }, "10.9.9.9"},
		"of another namespace":     {func(e *endpointv1.Endpoint) { e.TargetRef.Namespace = "kube-system" }, "10.0.0.1"},
		"of the pod's own machine": {func(e *endpointv1.Endpoint) { e.Addresses = []string{"127.0.0.1"} }, "127.0.0.1"},
		"of the cloud":             {func(e *endpointv1.Endpoint) { e.Addresses = []string{"169.254.169.254", "10.0.0.1"} }, "169.254.169.254"},
		"of a pod that is gone":    {func(e *endpointv1.Endpoint) { e.TargetRef.Name = "gone" }, ""},
		"not ready":                {func(e *endpointv1.Endpoint) { e.TargetRef, e.Conditions.Ready = nil, new(false) }, ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b, _, s := oneService()
			slice := b.Slice(s, "s-1", endpointv1.AddressTypeIPv4, clustertest.Endpoint("10.0.0.1", "a-v1-1", "node-1"))
			require.Len(t, destination(t, b).EndpointSubsets, 1)
			c.change(&slice.Endpoints[0])
			assert.Empty(t, given(destination(t, b)))
			foreign(t, b, c.says)
		})
	}
	t.Run("a pod without an address yet", func(t *testing.T) {
		t.Parallel()
		b, _, s := oneService()
		b.Slice(s, "s-1", endpointv1.AddressTypeIPv4, clustertest.Endpoint("10.0.0.1", "a-v1-1", "node-1"))
		for _, p := range b.Pods {
			p.Status = corev1.PodStatus{}
		}
		assert.Empty(t, destination(t, b).EndpointSubsets)
		foreign(t, b, "")
	})
	t.Run("a pod of the namespace by its address", func(t *testing.T) {
		t.Parallel()
		b, _, s := oneService()
		e := clustertest.Endpoint("10.0.0.1", "", "node-1")
		e.TargetRef = nil
		b.Slice(s, "s-1", endpointv1.AddressTypeIPv4, e)
		for _, p := range b.Pods {
			p.Status.PodIP = "10.0.0.1"
		}
		assert.Len(t, destination(t, b).EndpointSubsets, 1)
		foreign(t, b, "")
		for _, p := range b.Pods {
			p.Spec.HostNetwork = true // others have its address, too
		}
		assert.Empty(t, given(destination(t, b)))
		foreign(t, b, "10.0.0.1")
	})
}

// given are the endpoints that other clusters get.
func given(k *discoveryv1.KubeService) []discoveryv1.EndpointSubset {
	return slices.DeleteFunc(slices.Clone(k.EndpointSubsets), func(s discoveryv1.EndpointSubset) bool { return s.NoProxy })
}

// foreign says which address is reported to be that of no pod; empty if none is.
func foreign(t *testing.T, b clustertest.Builder, address string) {
	t.Helper()
	var said []string
	for _, issue := range discovery.Discover(b.Cluster, options()).Issues {
		if issue.Code == snapshot.EndpointIgnored {
			said = append(said, issue.Message)
		}
	}
	if address == "" {
		assert.Empty(t, said)
		return
	}
	require.Len(t, said, 1)
	assert.Equal(t, "its EndpointSlices have addresses that are not those of the pods that they name in its namespace ("+address+"): no policy protects them, and other clusters do not get them", said[0])
}

func TestExternalAddresses(t *testing.T) {
	t.Parallel()
	ip := func(a string) discoveryv1.ExternalAddress { return discoveryv1.ExternalAddress{Ip: a} }
	dns := func(a string) discoveryv1.ExternalAddress { return discoveryv1.ExternalAddress{DnsName: a} }
	address := func(t corev1.NodeAddressType, a string) corev1.NodeAddress {
		return corev1.NodeAddress{Type: t, Address: a}
	}
	inside, host := address(corev1.NodeInternalIP, "10.0.0.1"), address(corev1.NodeHostName, "node-1")
	for name, c := range map[string]struct {
		kind    corev1.ServiceType
		ingress []corev1.LoadBalancerIngress
		node    []corev1.NodeAddress
		fixed   []string
		want    []discoveryv1.ExternalAddress
		claimed []string
	}{
		"cluster IP":           {kind: corev1.ServiceTypeClusterIP, node: []corev1.NodeAddress{host}},
		"fixed, each once":     {kind: corev1.ServiceTypeClusterIP, fixed: []string{"2.2.2.2", "1.1.1.1", "2.2.2.2"}, claimed: []string{"1.1.1.1", "2.2.2.2"}},
		"balancer, none yet":   {kind: corev1.ServiceTypeLoadBalancer, node: []corev1.NodeAddress{host}},
		"balancer":             {kind: corev1.ServiceTypeLoadBalancer, ingress: []corev1.LoadBalancerIngress{{Hostname: "b"}, {IP: "2.2.2.2", Hostname: "c"}, {Hostname: "a"}, {}}, want: []discoveryv1.ExternalAddress{ip("2.2.2.2"), dns("a"), dns("b")}},
		"node, external IP":    {kind: corev1.ServiceTypeNodePort, node: []corev1.NodeAddress{inside, host, address(corev1.NodeExternalIP, "3.3.3.3"), address(corev1.NodeExternalDNS, "x")}, want: []discoveryv1.ExternalAddress{ip("3.3.3.3")}},
		"node, external name":  {kind: corev1.ServiceTypeNodePort, node: []corev1.NodeAddress{inside, host, address(corev1.NodeExternalDNS, "x")}, want: []discoveryv1.ExternalAddress{dns("x")}},
		"node, inside only":    {kind: corev1.ServiceTypeNodePort, node: []corev1.NodeAddress{inside, host}, want: []discoveryv1.ExternalAddress{ip("10.0.0.1")}},
		"node, host name only": {kind: corev1.ServiceTypeNodePort, node: []corev1.NodeAddress{host}},
		"node without address": {kind: corev1.ServiceTypeNodePort},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b, d, s := oneService()
			b.Pod(d, "a-v1-2", "node-1")
			b.Pod(d, "a-v1-3", "unknown-node")
			b.Node("node-1", nil, c.node...)
			s.Spec.Type, s.Spec.ExternalIPs, s.Status.LoadBalancer.Ingress = c.kind, c.fixed, c.ingress
			got := destination(t, b)
			assert.Equal(t, c.want, got.ExternalAddresses)
			assert.Equal(t, c.claimed, got.ExternalIPs)
		})
	}
}

func TestRegion(t *testing.T) {
	t.Parallel()
	b, d, _ := oneService()
	assert.Empty(t, destination(t, b).Region, "a node that nobody knows")
	b.Node("node-1", map[string]string{corev1.LabelFailureDomainBetaRegion: "west"})
	assert.Equal(t, "west", destination(t, b).Region, "the older label")
	b.Node("node-2", map[string]string{corev1.LabelTopologyRegion: "east", corev1.LabelFailureDomainBetaRegion: "x"})
	b.Pod(d, "a-v1-2", "node-2")
	assert.Equal(t, "east", destination(t, b).Region, "the first of equals")
	b.Pod(d, "a-v1-3", "node-1")
	assert.Equal(t, "west", destination(t, b).Region, "the most frequent")
	assert.Equal(t, "east", discovery.Discover(b.Cluster, options()).Meshes[0].Spec.Istio.Installation.Region)
}

// A Service without workloads asks for the mesh of its cluster.
func TestAnnotatedService(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		revisions []string
		want      string
		code      snapshot.Code
	}{
		"no mesh":            {nil, "", snapshot.ServiceWithoutMesh},
		"one mesh":           {[]string{"x"}, "istiod-x-istio-system-c", ""},
		"default among many": {[]string{"a", "default", "x"}, "istiod-istio-system-c", ""},
		"revisions only":     {[]string{"b", "a"}, "istiod-a-istio-system-c", snapshot.AmbiguousMesh},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := clustertest.New("c")
			for _, r := range c.revisions {
				b.Istiod(r)
			}
			b.Service("ns", "root", nil).Annotations = map[string]string{snapshot.DiscoverServiceAnnotation: "true"}
			got := discovery.Discover(b.Cluster, options())
			if c.want == "" {
				assert.Empty(t, got.Destinations)
			} else {
				require.Len(t, got.Destinations, 1)
				assert.Equal(t, c.want, got.Destinations[0].Spec.Mesh.Name)
			}
			if c.code == "" {
				assert.Empty(t, got.Issues)
				return
			}
			require.Len(t, got.Issues, 1)
			assert.Equal(t, c.code, got.Issues[0].Code)
		})
	}
}

// Whatever the order of the input, the result is the same, and the input is
// not touched.
func TestOrderDoesNotMatter(t *testing.T) {
	t.Parallel()
	c := manyServices(60)
	b := clustertest.Builder{Cluster: c}
	b.Istiod("other")                                                                            // ambiguous for some
	b.Deployment("ns-000", "svc-00001-x", map[string]string{"app": "svc-00001", "version": "x"}) // no pod
	b.Service("ns", "a-b", nil).Annotations = map[string]string{snapshot.DiscoverServiceAnnotation: "true"}
	b.Service("b-ns", "a", nil).Annotations = map[string]string{snapshot.DiscoverServiceAnnotation: "true"} // same name
	for i, p := range c.Pods {
		p.Annotations = []map[string]string{{"istio.io/rev": "default"}, {"istio.io/rev": "other"}, {"istio.io/rev": "gone"}, nil}[i%4]
	}
	want := discovery.Discover(c, options())
	require.NotEmpty(t, want.Issues)
	for seed := range int64(20) {
		input := shuffled(c, seed)
		before := copied(input)
		got := discovery.Discover(input, options())
		require.Equal(t, want, got, "seed %d", seed)
		require.Equal(t, before, input, "seed %d", seed)
		require.Same(t, want, discovery.Reuse(want, got), "seed %d", seed)
	}
	assert.True(t, slices.IsSortedFunc(want.Destinations, snapshot.CompareNames))
	assert.True(t, slices.IsSortedFunc(want.Workloads, snapshot.CompareNames))
	assert.True(t, slices.IsSortedFunc(want.Meshes, snapshot.CompareNames))
	assert.True(t, slices.IsSortedFunc(want.Issues, snapshot.Issue.Compare))
}

// What is stored and read back stands in for a cluster that cannot be read:
// equal to what was discovered, so that nothing changes when it comes back.
func TestFromStored(t *testing.T) {
	t.Parallel()
	c := manyServices(5)
	want := discovery.Discover(c, options())
	m := &snapshot.Management{Namespace: snapshot.DefaultNamespace}
	store := func(o metav1.Object, status func(), target any) {
		status()
		o.SetResourceVersion("7")
		o.SetUID("u")
		o.SetGeneration(3)
		o.SetAnnotations(map[string]string{"a": "b"})
		o.SetManagedFields([]metav1.ManagedFieldsEntry{{Manager: "meshctl"}})
		labels := map[string]string{snapshot.ClusterLabel: ""}
		for k, v := range o.GetLabels() {
			labels[k] = v
		}
		o.SetLabels(labels)
		data, err := json.Marshal(o)
		require.NoError(t, err)
		require.NoError(t, json.Unmarshal(data, target))
	}
	for _, o := range want.Meshes {
		stored, out := o.DeepCopy(), &discoveryv1.Mesh{}
		store(stored, func() { stored.Status.ObservedGeneration = 3 }, out)
		m.Meshes = append(m.Meshes, out)
	}
	for _, o := range want.Workloads {
		stored, out := o.DeepCopy(), &discoveryv1.Workload{}
		store(stored, func() { stored.Status.ObservedGeneration = 3 }, out)
		m.Workloads = append([]*discoveryv1.Workload{out}, m.Workloads...)
	}
	for _, o := range want.Destinations {
		stored, out := o.DeepCopy(), &discoveryv1.Destination{}
		store(stored, func() { stored.Status.ObservedGeneration = 3 }, out)
		m.Destinations = append(m.Destinations, out)
	}
	manual := m.Destinations[0].DeepCopy()
	manual.Name, manual.Labels = "manual", nil
	foreign := m.Destinations[0].DeepCopy()
	foreign.Name, foreign.Namespace = "foreign", "elsewhere"
	agent := m.Destinations[0].DeepCopy()
	agent.Name, agent.Labels[snapshot.DiscoveryOwnerLabel] = "agent", "gloo-mesh-cluster-1"
	hollow := m.Destinations[0].DeepCopy()
	hollow.Name, hollow.Spec = "hollow", discoveryv1.DestinationSpec{}
	m.Destinations = append(m.Destinations, manual, foreign, agent, hollow)

	got := discovery.FromStored(c.Name, m)
	assert.Equal(t, want, got)
	assert.Same(t, want, discovery.Reuse(want, got))
	assert.Equal(t, &snapshot.Discovered{Cluster: "cluster-2"}, discovery.FromStored("cluster-2", m))
}

func TestReuse(t *testing.T) {
	t.Parallel()
	older, newer := discovery.Discover(manyServices(4), options()), discovery.Discover(manyServices(4), options())
	assert.Same(t, older, discovery.Reuse(older, newer))
	assert.Same(t, newer, discovery.Reuse(nil, newer))
	assert.Nil(t, discovery.Reuse(older, nil))

	c := manyServices(4)
	c.Services[2].Labels = map[string]string{"changed": "yes"}
	changed := discovery.Discover(c, options())
	fresh := slices.Clone(changed.Destinations)
	got := discovery.Reuse(older, changed)
	assert.Equal(t, changed, got)
	assert.Equal(t, fresh, changed.Destinations)
	for i := range got.Destinations {
		assert.Same(t, fresh[i], changed.Destinations[i], "an argument was changed")
		assert.Equal(t, i != 2, got.Destinations[i] == older.Destinations[i], "destination %d", i)
	}
	assert.Same(t, &older.Workloads[0], &got.Workloads[0], "a list without changes is the older one")

	fewer := manyServices(3)
	for name, pair := range map[string][2]*snapshot.Discovered{
		"one added":   {discovery.Discover(fewer, options()), newer},
		"one removed": {newer, discovery.Discover(fewer, options())},
	} {
		got := discovery.Reuse(pair[0], pair[1])
		assert.Equal(t, pair[1], got, name)
		assert.NotSame(t, pair[0], got, name)
		for i := range 3 {
			assert.Same(t, pair[0].Destinations[i], got.Destinations[i], name)
		}
	}
	issue := *newer
	issue.Issues = []snapshot.Issue{{Code: snapshot.NameCollision}}
	got = discovery.Reuse(older, &issue)
	assert.NotSame(t, older, got)
	assert.Same(t, older.Meshes[0], got.Meshes[0])
	assert.Len(t, got.Issues, 1)
}
