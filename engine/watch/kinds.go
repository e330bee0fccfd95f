package watch

import (
	"cmp"
	"errors"

	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/rest"

	discoveryv1 "github.com/meshctl/meshctl/engine/api/discovery/v1"
	enterprisev1beta1 "github.com/meshctl/meshctl/engine/api/enterprise/v1beta1"
	multiclusterv1alpha1 "github.com/meshctl/meshctl/engine/api/multicluster/v1alpha1"
	networkingv1 "github.com/meshctl/meshctl/engine/api/networking/v1"
	observabilityv1 "github.com/meshctl/meshctl/engine/api/observability/v1"
	rbacv1 "github.com/meshctl/meshctl/engine/api/rbac/v1"
	settingsv1 "github.com/meshctl/meshctl/engine/api/settings/v1"
	"github.com/meshctl/meshctl/engine/kube"
	"github.com/meshctl/meshctl/engine/snapshot"
)

// withoutCopies leaves out a ConfigMap that is in every namespace and that nothing
// reads. istio-ca-root-cert is in every namespace, too: a field selector cannot name
// the few namespaces of control planes, which are known only after discovery.
const withoutCopies = "metadata.name!=kube-root-ca.crt"

// byHand selects objects that meshctl did not write; package apply watches those
// that it did.
const byHand = "!" + snapshot.NetworkingOwnerLabel

// newManagedCache prepares the feeds of a registered cluster: one line for each
// list of snapshot.Cluster, which follows from the type of the objects.
func newManagedCache(config *rest.Config, scheme *runtime.Scheme, seed *snapshot.Cluster, changed func()) (*clusterCache[snapshot.Cluster], error) {
	client, err := newClient(config, scheme, runtime.ContentTypeProtobuf)
	if err != nil {
		return nil, err
	}
	cache := newClusterCache[snapshot.Cluster](client, changed)
	seed = cmp.Or(seed, &snapshot.Cluster{})
	return cache, errors.Join(
		add(cache, seed, &kube.Lister{}, stripDeployment),
		add(cache, seed, &kube.Lister{}, stripDaemonSet),
		add(cache, seed, &kube.Lister{}, stripStatefulSet),
		add(cache, seed, &kube.Lister{}, stripReplicaSet),
		add(cache, seed, &kube.Lister{}, stripPod),
		add(cache, seed, &kube.Lister{}, stripService),
		add(cache, seed, &kube.Lister{}, stripEndpointSlice),
		add(cache, seed, &kube.Lister{}, stripNode),
		add(cache, seed, &kube.Lister{}, stripNamespace),
		add(cache, seed, &kube.Lister{Fields: withoutCopies}, stripConfigMap),
		add(cache, seed, &kube.Lister{Labels: byHand}, stripVirtualService),
		add(cache, seed, &kube.Lister{Labels: byHand}, stripServiceEntry),
		add(cache, seed, &kube.Lister{Labels: byHand}, stripDestinationRule),
		add(cache, seed, &kube.Lister{Labels: byHand}, stripAuthorizationPolicy),
		add(cache, seed, &kube.Lister{Labels: byHand}, stripSidecar),
		add(cache, seed, &kube.Lister{}, stripMeshConfig),
	)
}

// statuses says whether the statuses that meshctl writes are kept.
type statuses bool

const (
	// withStatuses keeps them, for readers of what was written.
	withStatuses statuses = true
	// withoutStatuses drops those that the engine does not read, so that writing
	// one does not notify the writer.
	withoutStatuses statuses = false
)

// newManagementCache prepares the feeds of the management cluster: one line for
// each list of snapshot.Management. Policies may be in any namespace, discovered
// objects and registrations are in the management namespace only.
func newManagementCache(config *rest.Config, scheme *runtime.Scheme, namespace string, keep statuses, changed func()) (*clusterCache[snapshot.Management], error) {
	client, err := newClient(config, scheme, runtime.ContentTypeJSON)
	if err != nil {
		return nil, err
	}
	cache := newClusterCache[snapshot.Management](client, changed)
	seed := &snapshot.Management{}
	own := func() *kube.Lister { return &kube.Lister{Namespace: namespace} }
	return cache, errors.Join(
		add(cache, seed, own(), stripOwn[*discoveryv1.Mesh]),
		add(cache, seed, own(), stripOwn[*discoveryv1.Workload]),
		add(cache, seed, own(), stripOwn[*discoveryv1.Destination]),
		add(cache, seed, own(), unless(keep, func(o *multiclusterv1alpha1.KubernetesCluster) { reset(&o.Status) })),
		add(cache, seed, &kube.Lister{}, unless(keep, func(o *settingsv1.Settings) { reset(&o.Status) })),
		add(cache, seed, &kube.Lister{}, unless(keep, func(o *networkingv1.VirtualMesh) { reset(&o.Status) })),
		add(cache, seed, &kube.Lister{}, unless(keep, dropTrafficStatus)),
		add(cache, seed, &kube.Lister{}, unless(keep, dropAccessStatus)),
		add(cache, seed, &kube.Lister{}, unless(keep, func(o *enterprisev1beta1.VirtualDestination) { reset(&o.Status) })),
		add(cache, seed, &kube.Lister{}, unless(keep, func(o *enterprisev1beta1.ServiceDependency) { reset(&o.Status) })),
		add(cache, seed, &kube.Lister{}, unless(keep, func(o *enterprisev1beta1.WasmDeployment) { reset(&o.Status) })),
		add(cache, seed, &kube.Lister{}, unless(keep, func(o *observabilityv1.AccessLogRecord) { reset(&o.Status) })),
		add(cache, seed, &kube.Lister{}, unless(keep, func(o *rbacv1.Role) { reset(&o.Status) })),
		add(cache, seed, &kube.Lister{}, unless(keep, func(o *rbacv1.RoleBinding) { reset(&o.Status) })),
	)
}

func reset[T any](value *T) {
	var zero T
	*value = zero
}
