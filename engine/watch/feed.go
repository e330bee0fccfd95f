package watch

import (
	"context"
	"fmt"
	"sync"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/apis/meta/internalversion"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/meshctl/meshctl/engine/kube"
	"github.com/meshctl/meshctl/engine/snapshot"
)

// maxFailedRequests is how many requests in a row must fail until a kind counts
// as unreadable though its API server answers: a permission or a CRD was removed.
const maxFailedRequests = 3

// feed watches one kind in one cluster and keeps its objects in a store.
type feed[T object] struct {
	*store[T]
	lister *kube.Lister
	// failed is called, without locks held, with each request that fails.
	failed func()
	// mayBeDenied: that the server forbids a request is no failure. What was read stays.
	mayBeDenied bool
	// mayBeAbsent: that the server does not know the kind means that there are no objects, as for optional kinds.
	mayBeAbsent bool

	mu       sync.Mutex
	err      error
	failures int
	// denied: the server forbade the last request that it answered.
	denied bool
}

// feeder is a feed of whatever type.
type feeder interface {
	run(ctx context.Context, silence time.Duration)
	read(ctx context.Context) error
	isFilled() bool
	isDenied() bool
	kind() snapshot.Kind
	heard() time.Time
	persistentError() error
	brokenObjects(cluster string) []snapshot.Failure
}

func (f *feed[T]) kind() snapshot.Kind { return f.lister.Kind }

// persistentError is the error of the last request if several in a row failed.
func (f *feed[T]) persistentError() error {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.failures < maxFailedRequests {
		return nil
	}
	return f.err
}

// newFeed makes a feed of what a lister lists. Objects of the seed that have not
// changed keep their pointers.
func newFeed[T object](lister *kube.Lister, seed []T, strip func(T) bool, changed, failed func()) *feed[T] {
	f := &feed[T]{store: newStore(seed, strip, changed), lister: lister, failed: failed}
	lister.Page, lister.Done = f.page, f.done
	if lister.Client != nil {
		f.hold = lister.Client.Hold
	}
	for _, o := range seed {
		f.grown += sizeOf(o) // it counts once the objects were listed: of those that are gone by then, nothing does
	}
	return f
}

// isDenied reports that the server forbids to read the objects, if that is no failure.
func (f *feed[T]) isDenied() bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.denied
}

// done records the result of a request.
func (f *feed[T]) done(err error) {
	missing := (f.mayBeAbsent || f.lister.Kind.Info().Optional) && kube.IsAbsent(err)
	denied := f.mayBeDenied && apierrors.IsForbidden(err)
	f.mu.Lock()
	f.err = err
	f.failures++
	if err == nil || missing || denied {
		f.err, f.failures = nil, 0
	}
	news := (err == nil || missing || denied) && f.denied != denied
	if news {
		f.denied = denied
	}
	f.mu.Unlock()
	if news {
		f.changed()
	}
	switch {
	case denied:
	case missing:
		_ = f.Replace(nil, "") // fails for objects of another type only
	case err != nil:
		f.failed()
	}
}

// run watches the kind until ctx ends, and returns when nothing more will be stored. A
// watch that delivers nothing for a time (silence) gives way to a list.
func (f *feed[T]) run(ctx context.Context, silence time.Duration) {
	f.lister.Silence = silence
	f.lister.Run(ctx, f.store)
}

// heard is when the server last sent something about the kind.
func (f *feed[T]) heard() time.Time { return f.lister.Heard() }

// read fills the store once, without watching.
func (f *feed[T]) read(ctx context.Context) error { return readOnce(ctx, f.lister, f.store) }

// page strips the objects of a list.
func (f *feed[T]) page(list runtime.Object) (runtime.Object, error) {
	return f.pageOf(list, func(item runtime.Object) runtime.Object {
		stripped, _ := f.stripped(item).(runtime.Object)
		return stripped
	})
}

// pageOf replaces each object of a list, or leaves it out if nothing replaces it. A list of the API type has no place for objects
// that cannot be processed.
func (f *feed[T]) pageOf(list runtime.Object, of func(runtime.Object) runtime.Object) (runtime.Object, error) {
	page, err := meta.ListAccessor(list)
	if err != nil {
		return nil, fmt.Errorf("list of %s: %w", f.lister.Kind, err)
	}
	out := &internalversion.List{ListMeta: metav1.ListMeta{
		ResourceVersion: page.GetResourceVersion(), Continue: page.GetContinue(), RemainingItemCount: page.GetRemainingItemCount(),
	}}
	return out, meta.EachListItemWithAlloc(list, func(item runtime.Object) error {
		if item = of(item); item != nil {
			out.Items = append(out.Items, item)
		}
		return nil
	})
}
