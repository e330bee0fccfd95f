package roots

import (
	"context"
	"fmt"
	"sync"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/client-go/tools/cache"

	"github.com/meshctl/meshctl/engine/kube"
)

// reader watches Secrets and keeps what they hold. It implements cache.ReflectorStore.
type reader struct {
	// what is watched, for messages.
	what string
	// parse reads a Secret.
	parse func(*corev1.Secret) *stored
	// changed is called when something changed; it does not block.
	changed func()
	stop    context.CancelFunc

	mu     sync.Mutex
	items  map[string]*stored
	filled bool
	// refused is why the API server does not let us read; empty if it does.
	refused string
}

// watch starts a reader of the Secrets of a namespace that a field selects.
func (s *Store) watch(ctx context.Context, what, namespace, fields string, parse func(*corev1.Secret) *stored) *reader {
	ctx, stop := context.WithCancel(ctx)
	r := &reader{what: what, parse: parse, changed: s.wake, stop: stop, items: map[string]*stored{}}
	lister := &kube.Lister{Client: s.client, Kind: secretKind, Namespace: namespace, Fields: fields, Done: r.done}
	s.group.Go(func() { defer stop(); lister.Run(ctx, r) })
	return r
}

var _ cache.ReflectorStore = (*reader)(nil)

// done notes the result of a request.
func (r *reader) done(err error) {
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

func (r *reader) put(obj any) {
	if secret, ok := obj.(*corev1.Secret); ok {
		parsed := r.parse(secret)
		r.mu.Lock()
		r.items[secret.Name] = parsed
		r.mu.Unlock()
		r.changed()
	}
}

// Add implements cache.ReflectorStore.
func (r *reader) Add(obj any) error { r.put(obj); return nil }

// Update implements cache.ReflectorStore.
func (r *reader) Update(obj any) error { r.put(obj); return nil }

// Delete implements cache.ReflectorStore.
func (r *reader) Delete(obj any) error {
	if secret, ok := obj.(*corev1.Secret); ok {
		r.mu.Lock()
		delete(r.items, secret.Name)
		r.mu.Unlock()
		r.changed()
	}
	return nil
}

// Replace implements cache.ReflectorStore.
func (r *reader) Replace(list []any, _ string) error {
	items := map[string]*stored{}
	for _, obj := range list {
		if secret, ok := obj.(*corev1.Secret); ok {
			items[secret.Name] = r.parse(secret)
		}
	}
	r.mu.Lock()
	r.items, r.filled = items, true
	r.mu.Unlock()
	r.changed()
	return nil
}

// Resync implements cache.ReflectorStore.
func (r *reader) Resync() error { return nil }

// all are the items; false if they were never read. Refused says why, if that is known.
func (r *reader) all() (items []*stored, refused string, filled bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, item := range r.items {
		items = append(items, item)
	}
	return items, r.refused, r.filled
}
