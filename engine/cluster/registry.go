package cluster

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"sync/atomic"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/dynamic/dynamicinformer"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/cache"

	"github.com/meshctl/meshctl/engine/kube"
	"github.com/meshctl/meshctl/engine/snapshot"
)

// Connection is how a registered cluster is reached, as last read.
type Connection struct {
	Name string
	// Domain is the DNS suffix of its Services, as its KubernetesCluster says.
	Domain string
	// Relayed: the cluster is reached through its agent, which dials; there is no Config.
	Relayed bool
	// Config reaches the cluster with the current token, whichever that is: a
	// renewed token takes effect in it while it is in use. It is another
	// pointer only if the server or its CA is another. Nil if Err is set.
	Config *rest.Config
	// UID is that of its namespace kube-system, as its server said when it was connected;
	// empty before, and if the credential may not read it.
	UID types.UID
	// Err says why the cluster cannot be reached at all: its credential is
	// broken or missing, or it leads to a cluster that has another name already. The
	// cluster is still registered: it is frozen, not gone.
	Err error
	// Refused says why what its Secret leads to is not used: Config is what it led to
	// before, which stays in use.
	Refused error
}

// Handler is called for registered clusters that are added, changed and removed:
// one call after the other, from one goroutine. It must not block.
type Handler interface {
	// Set adds a cluster, or changes its Domain, Config, UID, Err or Refused.
	Set(Connection)
	// Renewed says that the Config of a cluster has another token: what the server refused
	// may be tried again at once.
	Renewed(name string)
	// CredentialObserved says which Secret, by its Fingerprint, the calls before are about: one that was
	// changed only when it is known whether it is used.
	CredentialObserved(name, fingerprint string)
	// Remove removes a cluster that has neither a Secret nor a KubernetesCluster.
	Remove(name string)
}

// Registry keeps the clients of the registered clusters. It reads Secrets of
// type SecretType and KubernetesClusters of the management namespace only.
type Registry struct {
	namespace string
	userAgent string
	log       *slog.Logger
	// detour is nil where the stored addresses are the only ones.
	detour Detour

	clusterFactory dynamicinformer.DynamicSharedInformerFactory
	secrets        cache.SharedIndexInformer
	clusters       cache.SharedIndexInformer

	// unregistered are the Secrets that were logged as nobody's; for Run only.
	unregistered []string

	// changed has room for one: after any change everything is compared again.
	changed chan struct{}
	synced  chan struct{}

	// group are the informer of Secrets, and the checks of what is not in use yet.
	group sync.WaitGroup

	mu      sync.Mutex
	entries map[string]*entry
}

// NewRegistry builds a registry and does no I/O. Config reaches the management
// cluster; userAgent is shown to the registered ones. Detour may be nil.
func NewRegistry(config *rest.Config, namespace, userAgent string, log *slog.Logger, detour Detour) (*Registry, error) {
	clientset, err := kube.NewClientset(kube.Unlimited(config))
	if err != nil {
		return nil, fmt.Errorf("cluster registry: building a client: %w", err)
	}
	dyn, err := dynamic.NewForConfig(kube.Unlimited(config))
	if err != nil {
		return nil, fmt.Errorf("cluster registry: building a client: %w", err)
	}
	r := &Registry{
		namespace: namespace, userAgent: userAgent, log: log, detour: detour,
		changed: make(chan struct{}, 1), synced: make(chan struct{}), entries: map[string]*entry{},
	}
	// A factory of informers would have the linker keep those of all kinds.
	r.secrets = cache.NewSharedIndexInformer(cache.NewListWatchFromClient(clientset.CoreV1().RESTClient(), "secrets", namespace,
		fields.OneTermEqualSelector("type", SecretType)), &corev1.Secret{}, 0, cache.Indexers{})
	if err := r.secrets.SetTransform(stripManagedFields); err != nil {
		return nil, fmt.Errorf("cluster registry: watching Secrets: %w", err)
	}
	r.clusterFactory = dynamicinformer.NewFilteredDynamicSharedInformerFactory(dyn, 0, namespace, nil)
	r.clusters = r.clusterFactory.ForResource(snapshot.KubernetesCluster.GroupVersionResource()).Informer()
	for what, informer := range map[string]cache.SharedIndexInformer{"Secrets": r.secrets, "KubernetesClusters": r.clusters} {
		if err := r.watch(what, informer); err != nil {
			return nil, err
		}
	}
	return r, nil
}

// notify makes Run compare everything again.
func (r *Registry) notify() {
	select {
	case r.changed <- struct{}{}:
	default:
	}
}

func (r *Registry) watch(what string, informer cache.SharedIndexInformer) error {
	var failing atomic.Bool
	changed := func() {
		failing.Store(false)
		r.notify()
	}
	if _, err := informer.AddEventHandler(cache.ResourceEventHandlerFuncs{
		AddFunc: func(any) { changed() }, UpdateFunc: func(any, any) { changed() }, DeleteFunc: func(any) { changed() },
	}); err != nil {
		return fmt.Errorf("cluster registry: watching %s: %w", what, err)
	}
	if err := informer.SetWatchErrorHandlerWithContext(func(ctx context.Context, _ *cache.Reflector, err error) {
		if ctx.Err() != nil || failing.Swap(true) {
			return // an outage is logged once
		}
		r.log.Warn("registrations cannot be watched; registered clusters stay as they are", "namespace", r.namespace, "kind", what, "error", err)
	}); err != nil {
		return fmt.Errorf("cluster registry: watching %s: %w", what, err)
	}
	return nil
}

func stripManagedFields(o any) (any, error) {
	if object, ok := o.(metav1.Object); ok {
		object.SetManagedFields(nil)
	}
	return o, nil
}

// Run calls handler for the clusters until ctx ends, and then returns nil. It may
// be called once.
func (r *Registry) Run(ctx context.Context, handler Handler) error {
	ctx, cancel := context.WithCancel(ctx)
	r.group.Go(func() { r.secrets.RunWithContext(ctx) })
	r.clusterFactory.Start(ctx.Done())
	defer func() {
		cancel()
		r.group.Wait()
		r.clusterFactory.Shutdown()
	}()
	if !cache.WaitForCacheSync(ctx.Done(), r.secrets.HasSynced, r.clusters.HasSynced) {
		return nil
	}
	if err := r.resync(ctx, handler); err != nil {
		return err
	}
	close(r.synced)
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-r.changed:
			if err := r.resync(ctx, handler); err != nil {
				return err
			}
		}
	}
}

// Synced is closed once handler was called for every cluster that was registered
// at the start.
func (r *Registry) Synced() <-chan struct{} { return r.synced }

// read lists what the informers know.
func (r *Registry) read() (map[string]*corev1.Secret, map[string]Registration, error) {
	bySecret := map[string]*corev1.Secret{}
	for _, o := range r.secrets.GetStore().List() {
		secret, ok := o.(*corev1.Secret)
		if !ok {
			return nil, nil, errors.New("cluster registry: the cache of Secrets holds something else")
		}
		bySecret[secret.Name] = secret
	}
	byCluster := map[string]Registration{}
	for _, o := range r.clusters.GetStore().List() {
		u, ok := o.(runtime.Unstructured)
		if !ok {
			return nil, nil, errors.New("cluster registry: the cache of KubernetesClusters holds something else")
		}
		registration := readRegistration(u.UnstructuredContent())
		byCluster[registration.Name] = registration
	}
	return bySecret, byCluster, nil
}
