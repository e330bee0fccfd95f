package roots

import (
	"context"
	"fmt"
	"sync"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/cache"

	"github.com/meshctl/meshctl/engine/kube"
	"github.com/meshctl/meshctl/engine/snapshot"
)

// reader watches objects and keeps what is read of them. It implements cache.ReflectorStore.
type reader[O metav1.Object, T any] struct {
	// what is watched, for messages.
	what string
	// parse reads an object.
	parse func(O) T
	// changed is called when something changed; it does not block.
	changed func()
	stop    context.CancelFunc

	mu     sync.Mutex
	items  map[string]T
	filled bool
	// refused is why the API server does not let us read; empty if it does.
	refused string
}

// watch starts a reader of the objects of a kind, in a namespace, that a field selects.
func watch[O metav1.Object, T any](ctx context.Context, s *Store, k snapshot.Kind, what, namespace, fields string, parse func(O) T) *reader[O, T] {
	ctx, stop := context.WithCancel(ctx)
	r := &reader[O, T]{what: what, parse: parse, changed: s.wake, stop: stop, items: map[string]T{}}
	lister := &kube.Lister{Client: s.client, Kind: k, Namespace: namespace, Fields: fields, Done: r.done}
	s.group.Go(func() { defer stop(); lister.Run(ctx, r) })
	return r
}

// secretReader reads Secrets with roots, and recordReader the record.
type (
	secretReader = reader[*corev1.Secret, *stored]
	recordReader = reader[*corev1.ConfigMap, *corev1.ConfigMap]
)

var (
	_ cache.ReflectorStore = (*secretReader)(nil)
	_ cache.ReflectorStore = (*recordReader)(nil)
)

// done notes the result of a request.
func (r *reader[O, T]) done(err error) {
	refused := ""
	if apierrors.IsForbidden(err) {
		refused = fmt.Sprintf("%s cannot be read: %s; allow meshctl serve to list and watch it", r.what, kube.Message(err))
	}
	r.mu.Lock()
	was := r.refused
	r.refused = refused
	r.mu.Unlock()
	if refused != was {
		r.changed()
	}
}

func (r *reader[O, T]) put(obj any) {
	if o, ok := obj.(O); ok {
		parsed := r.parse(o)
		r.mu.Lock()
		r.items[o.GetName()] = parsed
		r.mu.Unlock()
		r.changed()
	}
}

// Add implements cache.ReflectorStore.
func (r *reader[O, T]) Add(obj any) error { r.put(obj); return nil }

// Update implements cache.ReflectorStore.
func (r *reader[O, T]) Update(obj any) error { r.put(obj); return nil }

// Delete implements cache.ReflectorStore.
func (r *reader[O, T]) Delete(obj any) error {
	if o, ok := obj.(O); ok {
		r.mu.Lock()
		delete(r.items, o.GetName())
		r.mu.Unlock()
		r.changed()
	}
	return nil
}

// Replace implements cache.ReflectorStore.
func (r *reader[O, T]) Replace(list []any, _ string) error {
	items := map[string]T{}
	for _, obj := range list {
		if o, ok := obj.(O); ok {
			items[o.GetName()] = r.parse(o)
		}
	}
	r.mu.Lock()
	r.items, r.filled = items, true
	r.mu.Unlock()
	r.changed()
	return nil
}

// Resync implements cache.ReflectorStore.
func (r *reader[O, T]) Resync() error { return nil }

// all are the items; false if they were never read. Refused says why, if that is known.
func (r *reader[O, T]) all() (items []T, refused string, filled bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, item := range r.items {
		items = append(items, item)
	}
	return items, r.refused, r.filled
}
