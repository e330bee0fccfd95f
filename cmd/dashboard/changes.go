package dashboard

import (
	"context"
	"fmt"
	"sync"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/cache"

	"github.com/meshctl/meshctl/engine/explain"
	"github.com/meshctl/meshctl/engine/kube"
	"github.com/meshctl/meshctl/engine/snapshot"
)

// changes follow what the server records of what changed.
type changes struct {
	informer cache.SharedIndexInformer
	changed  chan struct{}

	mu sync.Mutex
	// refused says why they cannot be read; empty if they can.
	refused string
}

func newChanges(config *rest.Config, namespace string) (*changes, error) {
	clientset, err := kube.NewClientset(config)
	if err != nil {
		return nil, fmt.Errorf("management cluster %s: %w", config.Host, err)
	}
	c := &changes{changed: make(chan struct{}, 1)}
	record := fields.OneTermEqualSelector(metav1.ObjectNameField, snapshot.ChangesRecord)
	// A factory of informers would have the linker keep those of all kinds.
	c.informer = cache.NewSharedIndexInformer(cache.NewListWatchFromClient(clientset.CoreV1().RESTClient(), "configmaps", namespace, record),
		&corev1.ConfigMap{}, 0, cache.Indexers{})
	wake := func() {
		select {
		case c.changed <- struct{}{}:
		default:
		}
	}
	wake() // so that the page says why it is empty
	if _, err := c.informer.AddEventHandler(cache.ResourceEventHandlerFuncs{
		AddFunc: func(any) { wake() }, UpdateFunc: func(any, any) { wake() }, DeleteFunc: func(any) { wake() },
	}); err != nil {
		return nil, fmt.Errorf("watching what changed: %w", err)
	}
	if err := c.informer.SetWatchErrorHandlerWithContext(func(_ context.Context, _ *cache.Reflector, err error) {
		if !apierrors.IsForbidden(err) {
			return // a cluster that does not answer is reported by the watch
		}
		c.mu.Lock()
		c.refused = "Changes cannot be shown: you may not list and watch ConfigMap " + snapshot.ChangesRecord + " in namespace " + namespace + ". A Role there with list and watch on it allows that."
		c.mu.Unlock()
		wake()
	}); err != nil {
		return nil, fmt.Errorf("watching what changed: %w", err)
	}
	return c, nil
}

// run follows them until ctx ends.
func (c *changes) run(ctx context.Context) error {
	c.informer.RunWithContext(ctx)
	return nil
}

// list is what changed, the oldest first, and why there is nothing.
func (c *changes) list() (list snapshot.Changes, empty string) {
	c.mu.Lock()
	empty = c.refused
	c.mu.Unlock()
	if empty != "" {
		return nil, empty
	}
	empty = explain.NoChanges
	for _, o := range c.informer.GetStore().List() {
		if record, ok := o.(*corev1.ConfigMap); ok {
			var err error
			if list, err = snapshot.ParseChanges(record.Data[snapshot.ChangesKey]); err != nil {
				empty = "Changes cannot be shown: " + err.Error() + "; meshctl serve writes the record anew when it starts."
			}
		}
	}
	return list, empty
}
