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

// withoutCopies leaves out ConfigMaps that stand in every namespace and never
// hold a mesh's configuration.
const withoutCopies = "metadata.name!=kube-root-ca.crt,metadata.name!=istio-ca-root-cert"

// byHand selects what others than this program wrote: what it wrote itself is
// followed by who writes it.
const byHand = "!" + snapshot.NetworkingOwnerLabel

// newManagedPlane prepares the feeds of a registered cluster: one line for each
// list of snapshot.Cluster, which follows from the type of the objects.
func newManagedPlane(config *rest.Config, scheme *runtime.Scheme, seed *snapshot.Cluster, changed func()) (*plane[snapshot.Cluster], error) {
	c, err := newClient(config, scheme, runtime.ContentTypeProtobuf)
	if err != nil {
		return nil, err
	}
	p := newPlane[snapshot.Cluster](c, changed)
	seed = cmp.Or(seed, &snapshot.Cluster{})
	return p, errors.Join(
		add(p, seed, &kube.Lister{}, stripDeployment),
		add(p, seed, &kube.Lister{}, stripDaemonSet),
		add(p, seed, &kube.Lister{}, stripStatefulSet),
		add(p, seed, &kube.Lister{}, stripReplicaSet),
		add(p, seed, &kube.Lister{}, stripPod),
		add(p, seed, &kube.Lister{}, stripService),
		add(p, seed, &kube.Lister{}, stripEndpointSlice),
		add(p, seed, &kube.Lister{}, stripNode),
		add(p, seed, &kube.Lister{}, stripNamespace),
		add(p, seed, &kube.Lister{Fields: withoutCopies}, stripConfigMap),
		add(p, seed, &kube.Lister{Labels: byHand}, stripVirtualService),
		add(p, seed, &kube.Lister{Labels: byHand}, stripServiceEntry),
		add(p, seed, &kube.Lister{Labels: byHand}, stripDestinationRule),
		add(p, seed, &kube.Lister{Labels: byHand}, stripAuthorizationPolicy),
		add(p, seed, &kube.Lister{Labels: byHand}, stripSidecar),
		add(p, seed, &kube.Lister{}, stripMeshConfig),
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

// newManagementPlane prepares the feeds of the management cluster: one line for
// each list of snapshot.Management. Policies may be in any namespace, discovered
// objects and registrations are in the management namespace only.
func newManagementPlane(config *rest.Config, scheme *runtime.Scheme, namespace string, keep statuses, changed func()) (*plane[snapshot.Management], error) {
	c, err := newClient(config, scheme, runtime.ContentTypeJSON)
	if err != nil {
		return nil, err
	}
	p := newPlane[snapshot.Management](c, changed)
	seed := &snapshot.Management{}
	own := func() *kube.Lister { return &kube.Lister{Namespace: namespace} }
	return p, errors.Join(
		add(p, seed, own(), stripOwn[*discoveryv1.Mesh]),
		add(p, seed, own(), stripOwn[*discoveryv1.Workload]),
		add(p, seed, own(), stripOwn[*discoveryv1.Destination]),
		add(p, seed, own(), unless(keep, func(o *multiclusterv1alpha1.KubernetesCluster) { reset(&o.Status) })),
		add(p, seed, &kube.Lister{}, unless(keep, func(o *settingsv1.Settings) { reset(&o.Status) })),
		add(p, seed, &kube.Lister{}, unless(keep, func(o *networkingv1.VirtualMesh) { reset(&o.Status) })),
		add(p, seed, &kube.Lister{}, unless(keep, dropTrafficStatus)),
		add(p, seed, &kube.Lister{}, unless(keep, dropAccessStatus)),
		add(p, seed, &kube.Lister{}, unless(keep, func(o *enterprisev1beta1.VirtualDestination) { reset(&o.Status) })),
		add(p, seed, &kube.Lister{}, unless(keep, func(o *enterprisev1beta1.ServiceDependency) { reset(&o.Status) })),
		add(p, seed, &kube.Lister{}, unless(keep, func(o *enterprisev1beta1.WasmDeployment) { reset(&o.Status) })),
		add(p, seed, &kube.Lister{}, unless(keep, func(o *observabilityv1.AccessLogRecord) { reset(&o.Status) })),
		add(p, seed, &kube.Lister{}, unless(keep, func(o *rbacv1.Role) { reset(&o.Status) })),
		add(p, seed, &kube.Lister{}, unless(keep, func(o *rbacv1.RoleBinding) { reset(&o.Status) })),
	)
}

func reset[T any](value *T) {
	var zero T
	*value = zero
}
