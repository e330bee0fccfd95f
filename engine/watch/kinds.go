package watch

import (
	"errors"
	"maps"
	"slices"

	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/rest"

	"github.com/meshctl/meshctl/engine"
	certificatesv1 "github.com/meshctl/meshctl/engine/api/certificates/v1"
	discoveryv1 "github.com/meshctl/meshctl/engine/api/discovery/v1"
	enterprisev1beta1 "github.com/meshctl/meshctl/engine/api/enterprise/v1beta1"
	rbacv1 "github.com/meshctl/meshctl/engine/api/rbac/v1"
	settingsv1 "github.com/meshctl/meshctl/engine/api/settings/v1"
	"github.com/meshctl/meshctl/engine/kube"
	"github.com/meshctl/meshctl/engine/mirror"
	"github.com/meshctl/meshctl/engine/snapshot"
)

// detectors say what is read of objects beside what is always kept. They are read-only.
var detectors = engine.Detectors()

// managedRead is what is read of one kind of a registered cluster.
type managedRead struct {
	kind snapshot.Kind
	// strip removes in place what the engine does not read, and reports whether it reads the object at all.
	strip func(snapshot.APIObject) bool
	// add makes a cache watch the kind.
	add func(c *clusterCache[snapshot.Cluster], seed *snapshot.Cluster) error
}

// readAs is the managedRead of a kind that is added with a lister made of labels.
func readAs[T object](labels string, strip func(T) bool) managedRead {
	return managedRead{kindOf[T](), stripAs(strip), func(c *clusterCache[snapshot.Cluster], seed *snapshot.Cluster) error {
		return add(c, seed, &kube.Lister{Labels: labels}, strip)
	}}
}

// stripAs is a function that strips objects of one type, for those of any. One of another type is not read.
func stripAs[T object](strip func(T) bool) func(snapshot.APIObject) bool {
	return func(o snapshot.APIObject) bool {
		typed, ok := any(o).(T)
		return ok && strip(typed)
	}
}

// managedReads has one line for each list of snapshot.Cluster, which follows from the type of the objects. Of the kinds of meshes, the
// lists have the objects that the plane did not generate.
func managedReads(plane snapshot.Plane, cluster string, keep statuses) []managedRead {
	issued := unless(keep, dropVerifiedAt)
	reads := []managedRead{
		readAs("", stripDeployment),
		readAs("", stripDaemonSet),
		readAs("", stripStatefulSet),
		readAs("", stripReplicaSet),
		readAs("", stripPod),
		readAs("", stripService),
		readAs("", stripEndpointSlice),
		readAs("", stripNode),
		readAs("", stripNamespace),
		readAs("", stripNetworkPolicy),
		readAs(detectors.InjectorSelector(), stripWebhooks),
		{snapshot.IssuedCertificate, stripAs(issued), func(c *clusterCache[snapshot.Cluster], seed *snapshot.Cluster) error {
			return addMirrored(c, seed, &kube.Lister{}, all, issued)
		}},
		readAs("", stripOwn[*certificatesv1.CertificateRequest]),
		{snapshot.TrafficPolicy, stripAs(unless(keep, dropTrafficStatus)), func(c *clusterCache[snapshot.Cluster], seed *snapshot.Cluster) error {
			return addMirrored(c, seed, &kube.Lister{Asks: true}, all, unless(keep, dropTrafficStatus))
		}},
		{snapshot.AccessPolicy, stripAs(unless(keep, dropAccessStatus)), func(c *clusterCache[snapshot.Cluster], seed *snapshot.Cluster) error {
			return addMirrored(c, seed, &kube.Lister{Asks: true}, all, unless(keep, dropAccessStatus))
		}},
		{snapshot.VirtualDestination, stripAs(unless(keep, dropVirtualStatus)), func(c *clusterCache[snapshot.Cluster], seed *snapshot.Cluster) error {
			return addMirrored(c, seed, &kube.Lister{Asks: true}, all, unless(keep, dropVirtualStatus))
		}},
		{snapshot.ServiceDependency, stripAs(unless(keep, dropDependencyStatus)), func(c *clusterCache[snapshot.Cluster], seed *snapshot.Cluster) error {
			return addMirrored(c, seed, &kube.Lister{Asks: true}, all, unless(keep, dropDependencyStatus))
		}},
	}
	logged := unless(keep, dropAccessLogStatus)
	reads = append(reads, managedRead{snapshot.AccessLogRecord, stripAs(logged), func(c *clusterCache[snapshot.Cluster], seed *snapshot.Cluster) error {
		return addMirrored(c, seed, &kube.Lister{Asks: true}, all, logged)
	}})
	byHand := func(labels map[string]string) bool { return !plane.Generated(labels, cluster) }
	for _, dialect := range engine.Dialects() {
		for _, kind := range slices.Sorted(maps.Keys(dialect.Reads)) {
			strip := dialect.Reads[kind]
			reads = append(reads, managedRead{kind, func(o snapshot.APIObject) bool { strip(o); return true }, func(c *clusterCache[snapshot.Cluster], seed *snapshot.Cluster) error {
				return addOfMesh(c, seed, kind, byHand, strip)
			}})
		}
	}
	return reads
}

// newManagedCache prepares the feeds of a registered cluster. The seed is the cluster with what was read of it before.
func newManagedCache(config *rest.Config, link *mirror.Link, scheme *runtime.Scheme, plane snapshot.Plane, seed *snapshot.Cluster, keep statuses, budget *kube.Budget, changed func()) (*clusterCache[snapshot.Cluster], error) {
	client, err := newClient(config, wireScheme(scheme, snapshot.ManagedSide), runtime.ContentTypeProtobuf, budget)
	if err != nil {
		return nil, err
	}
	cache := newClusterCache[snapshot.Cluster](client, link.NewConnection(config, client, seed.Name, plane), changed)
	for _, read := range managedReads(plane, seed.Name, keep) {
		err = errors.Join(err, read.add(cache, seed))
	}
	addUnread(cache, snapshot.ManagedSide)
	addConfigMaps(cache, seed)
	cache.copiers = append(cache.copiers, func(view *snapshot.Cluster) bool {
		before := view.Denied
		view.Denied = deniedOf(cache.feeds)
		return !slices.Equal(before, view.Denied)
	})
	return cache, err
}

// deniedOf are the kinds that the server forbids to read, ascending.
func deniedOf(feeds []feeder) (out []snapshot.Kind) {
	for _, f := range feeds {
		if f.isDenied() {
			out = append(out, f.kind())
		}
	}
	slices.Sort(out)
	return slices.Compact(out)
}

// all is for kinds of which the engine reads all objects.
func all(map[string]string) bool { return true }

// addUnread mirrors the kinds of a side that the management plane writes, and of which nothing else is read.
func addUnread[V any](cache *clusterCache[V], side snapshot.Side) {
	for _, kind := range mirroredKinds(side) {
		if !slices.ContainsFunc(cache.feeds, func(f feeder) bool { return f.kind() == kind }) {
			addMirror(cache, kind)
		}
	}
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
func newManagementCache(config *rest.Config, link *mirror.Link, scheme *runtime.Scheme, plane snapshot.Plane, keep statuses, changed func()) (*clusterCache[snapshot.Management], error) {
	client, err := newClient(config, wireScheme(scheme, snapshot.ManagementSide), runtime.ContentTypeJSON, nil)
	if err != nil {
		return nil, err
	}
	cache := newClusterCache[snapshot.Management](client, link.NewConnection(config, client, "", plane), changed)
	seed := &snapshot.Management{} // it is read once
	own := func() *kube.Lister { return &kube.Lister{Namespace: plane.Namespace} }
	return cache, errors.Join(
		addMirrored(cache, seed, own(), all, stripOwn[*discoveryv1.Mesh]),
		addMirrored(cache, seed, own(), all, stripOwn[*discoveryv1.Workload]),
		addMirrored(cache, seed, own(), all, stripOwn[*discoveryv1.Destination]),
		addMirrored(cache, seed, own(), all, unless(keep, dropClusterStatus)),
		addMirrored(cache, seed, &kube.Lister{}, all, unless(keep, func(o *settingsv1.Settings) { reset(&o.Status) })),
		addMirrored(cache, seed, &kube.Lister{}, all, unless(keep, dropVirtualMeshStatus)),
		addMirrored(cache, seed, &kube.Lister{}, all, unless(keep, dropTrafficStatus)),
		addMirrored(cache, seed, &kube.Lister{}, all, unless(keep, dropAccessStatus)),
		addMirrored(cache, seed, &kube.Lister{}, all, unless(keep, dropVirtualStatus)),
		addMirrored(cache, seed, &kube.Lister{}, all, unless(keep, dropDependencyStatus)),
		add(cache, seed, &kube.Lister{}, unless(keep, func(o *enterprisev1beta1.WasmDeployment) { reset(&o.Status) })),
		addMirrored(cache, seed, &kube.Lister{}, all, unless(keep, dropAccessLogStatus)),
		add(cache, seed, &kube.Lister{}, unless(keep, func(o *rbacv1.Role) { reset(&o.Status) })),
		add(cache, seed, &kube.Lister{}, unless(keep, func(o *rbacv1.RoleBinding) { reset(&o.Status) })),
	)
}

func reset[T any](value *T) {
	var zero T
	*value = zero
}
