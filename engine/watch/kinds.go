package watch

import (
	"cmp"
	"errors"

	osmconfigv1alpha2 "github.com/openservicemesh/osm/pkg/apis/config/v1alpha2"
	istionetworkingv1 "istio.io/client-go/pkg/apis/networking/v1"
	istiosecurityv1 "istio.io/client-go/pkg/apis/security/v1"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	endpointv1 "k8s.io/api/discovery/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/rest"

	discoveryv1 "github.com/meshctl/meshctl/engine/api/discovery/v1"
	enterprisev1beta1 "github.com/meshctl/meshctl/engine/api/enterprise/v1beta1"
	multiclusterv1alpha1 "github.com/meshctl/meshctl/engine/api/multicluster/v1alpha1"
	networkingv1 "github.com/meshctl/meshctl/engine/api/networking/v1"
	observabilityv1 "github.com/meshctl/meshctl/engine/api/observability/v1"
	rbacv1 "github.com/meshctl/meshctl/engine/api/rbac/v1"
	settingsv1 "github.com/meshctl/meshctl/engine/api/settings/v1"
	"github.com/meshctl/meshctl/engine/snapshot"
)

// withoutCopies leaves out ConfigMaps that stand in every namespace and never
// hold a mesh's configuration.
const withoutCopies = "metadata.name!=kube-root-ca.crt,metadata.name!=istio-ca-root-cert"

// byHand selects what others than this program wrote: what it wrote itself is
// followed by who writes it.
const byHand = "!" + snapshot.NetworkingOwnerLabel

// newManagedPlane prepares the feeds of a registered cluster: one line a list
// of snapshot.Cluster.
func newManagedPlane(config *rest.Config, scheme *runtime.Scheme, seed *snapshot.Cluster, changed func()) (*plane[snapshot.Cluster], error) {
	c, err := newClients(config, scheme, runtime.ContentTypeProtobuf)
	if err != nil {
		return nil, err
	}
	type cluster = snapshot.Cluster
	p := newPlane[cluster](c, changed)
	seed = cmp.Or(seed, &cluster{})
	return p, errors.Join(
		add(p, seed, query{kind: snapshot.Deployment}, &appsv1.Deployment{}, stripDeployment, func(c *cluster) *[]*appsv1.Deployment { return &c.Deployments }),
		add(p, seed, query{kind: snapshot.DaemonSet}, &appsv1.DaemonSet{}, stripDaemonSet, func(c *cluster) *[]*appsv1.DaemonSet { return &c.DaemonSets }),
		add(p, seed, query{kind: snapshot.StatefulSet}, &appsv1.StatefulSet{}, stripStatefulSet, func(c *cluster) *[]*appsv1.StatefulSet { return &c.StatefulSets }),
		add(p, seed, query{kind: snapshot.ReplicaSet}, &appsv1.ReplicaSet{}, stripReplicaSet, func(c *cluster) *[]*appsv1.ReplicaSet { return &c.ReplicaSets }),
		add(p, seed, query{kind: snapshot.Pod}, &corev1.Pod{}, stripPod, func(c *cluster) *[]*corev1.Pod { return &c.Pods }),
		add(p, seed, query{kind: snapshot.Service}, &corev1.Service{}, stripService, func(c *cluster) *[]*corev1.Service { return &c.Services }),
		add(p, seed, query{kind: snapshot.EndpointSlice}, &endpointv1.EndpointSlice{}, stripEndpointSlice, func(c *cluster) *[]*endpointv1.EndpointSlice { return &c.EndpointSlices }),
		add(p, seed, query{kind: snapshot.Node}, &corev1.Node{}, stripNode, func(c *cluster) *[]*corev1.Node { return &c.Nodes }),
		add(p, seed, query{kind: snapshot.Namespace}, &corev1.Namespace{}, stripNamespace, func(c *cluster) *[]*corev1.Namespace { return &c.Namespaces }),
		add(p, seed, query{kind: snapshot.ConfigMap, fields: withoutCopies}, &corev1.ConfigMap{}, stripConfigMap, func(c *cluster) *[]*corev1.ConfigMap { return &c.ConfigMaps }),
		add(p, seed, query{kind: snapshot.VirtualService, labels: byHand}, &istionetworkingv1.VirtualService{}, stripVirtualService, func(c *cluster) *[]*istionetworkingv1.VirtualService { return &c.VirtualServices }),
		add(p, seed, query{kind: snapshot.ServiceEntry, labels: byHand}, &istionetworkingv1.ServiceEntry{}, stripServiceEntry, func(c *cluster) *[]*istionetworkingv1.ServiceEntry { return &c.ServiceEntries }),
		add(p, seed, query{kind: snapshot.DestinationRule, labels: byHand}, &istionetworkingv1.DestinationRule{}, stripDestinationRule, func(c *cluster) *[]*istionetworkingv1.DestinationRule { return &c.DestinationRules }),
		add(p, seed, query{kind: snapshot.AuthorizationPolicy, labels: byHand}, &istiosecurityv1.AuthorizationPolicy{}, stripAuthorizationPolicy, func(c *cluster) *[]*istiosecurityv1.AuthorizationPolicy { return &c.AuthorizationPolicies }),
		add(p, seed, query{kind: snapshot.Sidecar, labels: byHand}, &istionetworkingv1.Sidecar{}, stripSidecar, func(c *cluster) *[]*istionetworkingv1.Sidecar { return &c.Sidecars }),
		add(p, seed, query{kind: snapshot.MeshConfig}, &osmconfigv1alpha2.MeshConfig{}, stripMeshConfig, func(c *cluster) *[]*osmconfigv1alpha2.MeshConfig { return &c.MeshConfigs }),
	)
}

// statuses says what becomes of the statuses that we ourselves write.
type statuses bool

const (
	// withStatuses keeps them, for who reads what was written.
	withStatuses statuses = true
	// withoutStatuses drops them where the engine does not read them, so that
	// writing one does not wake who wrote it.
	withoutStatuses statuses = false
)

// newManagementPlane prepares the feeds of the management cluster: one line a
// list of snapshot.Management. Policies may be in any namespace, discovered
// objects and registrations are in the management namespace only.
func newManagementPlane(config *rest.Config, scheme *runtime.Scheme, namespace string, keep statuses, changed func()) (*plane[snapshot.Management], error) {
	c, err := newClients(config, scheme, runtime.ContentTypeJSON)
	if err != nil {
		return nil, err
	}
	type management = snapshot.Management
	p := newPlane[management](c, changed)
	seed := &management{}
	return p, errors.Join(
		add(p, seed, query{kind: snapshot.Mesh, namespace: namespace}, &discoveryv1.Mesh{}, stripOwn, func(m *management) *[]*discoveryv1.Mesh { return &m.Meshes }),
		add(p, seed, query{kind: snapshot.Workload, namespace: namespace}, &discoveryv1.Workload{}, stripOwn, func(m *management) *[]*discoveryv1.Workload { return &m.Workloads }),
		add(p, seed, query{kind: snapshot.Destination, namespace: namespace}, &discoveryv1.Destination{}, stripOwn, func(m *management) *[]*discoveryv1.Destination { return &m.Destinations }),
		add(p, seed, query{kind: snapshot.KubernetesCluster, namespace: namespace}, &multiclusterv1alpha1.KubernetesCluster{}, unless(keep, func(o *multiclusterv1alpha1.KubernetesCluster) {
			o.Status = multiclusterv1alpha1.KubernetesClusterStatus{}
		}), func(m *management) *[]*multiclusterv1alpha1.KubernetesCluster { return &m.KubernetesClusters }),
		add(p, seed, query{kind: snapshot.Settings}, &settingsv1.Settings{}, unless(keep, func(o *settingsv1.Settings) { o.Status = settingsv1.SettingsStatus{} }), func(m *management) *[]*settingsv1.Settings { return &m.Settings }),
		add(p, seed, query{kind: snapshot.VirtualMesh}, &networkingv1.VirtualMesh{}, unless(keep, func(o *networkingv1.VirtualMesh) { o.Status = networkingv1.VirtualMeshStatus{} }), func(m *management) *[]*networkingv1.VirtualMesh { return &m.VirtualMeshes }),
		add(p, seed, query{kind: snapshot.TrafficPolicy}, &networkingv1.TrafficPolicy{}, unless(keep, dropTrafficStatus), func(m *management) *[]*networkingv1.TrafficPolicy { return &m.TrafficPolicies }),
		add(p, seed, query{kind: snapshot.AccessPolicy}, &networkingv1.AccessPolicy{}, unless(keep, dropAccessStatus), func(m *management) *[]*networkingv1.AccessPolicy { return &m.AccessPolicies }),
		add(p, seed, query{kind: snapshot.VirtualDestination}, &enterprisev1beta1.VirtualDestination{}, unless(keep, func(o *enterprisev1beta1.VirtualDestination) { o.Status = enterprisev1beta1.VirtualDestinationStatus{} }), func(m *management) *[]*enterprisev1beta1.VirtualDestination { return &m.VirtualDestinations }),
		add(p, seed, query{kind: snapshot.ServiceDependency}, &enterprisev1beta1.ServiceDependency{}, unless(keep, func(o *enterprisev1beta1.ServiceDependency) { o.Status = enterprisev1beta1.ServiceDependencyStatus{} }), func(m *management) *[]*enterprisev1beta1.ServiceDependency { return &m.ServiceDependencies }),
		add(p, seed, query{kind: snapshot.WasmDeployment}, &enterprisev1beta1.WasmDeployment{}, unless(keep, func(o *enterprisev1beta1.WasmDeployment) { o.Status = enterprisev1beta1.WasmDeploymentStatus{} }), func(m *management) *[]*enterprisev1beta1.WasmDeployment { return &m.WasmDeployments }),
		add(p, seed, query{kind: snapshot.AccessLogRecord}, &observabilityv1.AccessLogRecord{}, unless(keep, func(o *observabilityv1.AccessLogRecord) { o.Status = observabilityv1.AccessLogRecordStatus{} }), func(m *management) *[]*observabilityv1.AccessLogRecord { return &m.AccessLogRecords }),
		add(p, seed, query{kind: snapshot.Role}, &rbacv1.Role{}, unless(keep, func(o *rbacv1.Role) { o.Status = rbacv1.RoleStatus{} }), func(m *management) *[]*rbacv1.Role { return &m.Roles }),
		add(p, seed, query{kind: snapshot.RoleBinding}, &rbacv1.RoleBinding{}, unless(keep, func(o *rbacv1.RoleBinding) { o.Status = rbacv1.RoleBindingStatus{} }), func(m *management) *[]*rbacv1.RoleBinding { return &m.RoleBindings }),
	)
}
