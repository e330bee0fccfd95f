package watch

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/go-logr/logr"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/apis/meta/internalversion"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/cache"
	"k8s.io/klog/v2"

	"github.com/meshctl/meshctl/engine/snapshot"
)

// troubled is how many requests in a row must fail until a feed counts as cut
// off though its API server answers: a permission was taken away, a CRD removed.
const troubled = 3

// query says which objects of a kind to follow.
type query struct {
	kind snapshot.Kind
	// namespace limits the objects to one; all if empty.
	namespace string
	// fields is a field selector; everything if empty.
	fields string
	// labels is a label selector; everything if empty.
	labels string
}

// feed follows one kind in one cluster into a collection.
type feed[T object] struct {
	*collection[T]
	query
	client rest.Interface
	// failed is called, without locks held, with each request that fails.
	failed func()

	mu       sync.Mutex
	err      error
	failures int
	// absent: the API server said that it serves no such kind, which is optional.
	absent bool
}

// feeder is a feed of whatever type.
type feeder interface {
	run(ctx context.Context)
	read(ctx context.Context) error
	isFilled() bool
	trouble() (snapshot.Kind, error)
	brokenObjects(cluster string) []snapshot.Failure
}

// trouble is the error of the last request if several in a row failed.
func (f *feed[T]) trouble() (snapshot.Kind, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.failures < troubled {
		return f.kind, nil
	}
	return f.kind, f.err
}

// note records how a request went.
func (f *feed[T]) note(ctx context.Context, err error) {
	if ctx.Err() != nil {
		return
	}
	// An API server that has just started answers 503 until it knows its CRDs,
	// so this answer can be trusted.
	missing := f.kind.Info().Optional && apierrors.IsNotFound(err)
	f.mu.Lock()
	f.err = err
	f.failures++
	if err == nil || missing {
		f.err, f.failures = nil, 0
	}
	f.absent = missing
	f.mu.Unlock()
	switch {
	case missing:
		_ = f.Replace(nil, "") // fails for objects of another type only
	case err != nil:
		f.failed()
	}
}

// isAbsent reports whether the kind was not served when that was last asked.
func (f *feed[T]) isAbsent() bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.absent
}

// errAbsent makes the reflector ask by a list, as it does where streaming is not to be had.
var errAbsent = errors.New("the kind is not served")

// run follows the kind until ctx ends, and returns when nothing more will be stored.
func (f *feed[T]) run(ctx context.Context) {
	// The reflector's own words would come once per kind and try; what they
	// say is told once per cluster, by the session.
	ctx = klog.NewContext(ctx, logr.Discard())
	cache.NewReflectorWithOptions(f, f.kind.New(), f.collection, cache.ReflectorOptions{
		Name:            f.kind.Info().Resource,
		TypeDescription: f.kind.String(),
		// While an optional kind is absent, the cap is how long its arrival may go
		// unnoticed, at the price of one small question in that time.
		Backoff: &wait.Backoff{Duration: 500 * time.Millisecond, Factor: 2, Jitter: 0.5, Steps: 10, Cap: 15 * time.Second},
	}).RunWithContext(ctx)
}

// read fills the collection once, without following what changes.
func (f *feed[T]) read(ctx context.Context) error {
	list, err := f.ListWithContext(ctx, metav1.ListOptions{})
	if err != nil {
		return err
	}
	var items []any
	if err := meta.EachListItem(list, func(item runtime.Object) error {
		items = append(items, item)
		return nil
	}); err != nil {
		return fmt.Errorf("list of %s: %w", f.kind, err)
	}
	return f.Replace(items, "")
}

func (f *feed[T]) request(options *metav1.ListOptions) *rest.Request {
	options.FieldSelector, options.LabelSelector = f.fields, f.labels
	return f.client.Get().Namespace(f.namespace).Resource(f.kind.Info().Resource).
		VersionedParams(options, metav1.ParameterCodec)
}

// List implements cache.ListerWatcher; the reflector calls ListWithContext.
func (f *feed[T]) List(options metav1.ListOptions) (runtime.Object, error) {
	return f.ListWithContext(context.Background(), options)
}

// Watch implements cache.ListerWatcher; the reflector calls WatchWithContext.
func (f *feed[T]) Watch(options metav1.ListOptions) (watch.Interface, error) {
	return f.WatchWithContext(context.Background(), options)
}

// ListWithContext implements cache.ListerWithContext for servers that cannot
// stream lists. Objects are stripped page by page.
func (f *feed[T]) ListWithContext(ctx context.Context, options metav1.ListOptions) (runtime.Object, error) {
	list, err := f.request(&options).Do(ctx).Get()
	f.note(ctx, err)
	if err != nil {
		return nil, err
	}
	page, err := meta.ListAccessor(list)
	if err != nil {
		return nil, fmt.Errorf("list of %s: %w", f.kind, err)
	}
	// A list of the API type has no place for objects that cannot be processed.
	out := &internalversion.List{ListMeta: metav1.ListMeta{
		ResourceVersion: page.GetResourceVersion(), Continue: page.GetContinue(), RemainingItemCount: page.GetRemainingItemCount(),
	}}
	return out, meta.EachListItemWithAlloc(list, func(item runtime.Object) error {
		if stripped, ok := f.stripped(item).(runtime.Object); ok {
			out.Items = append(out.Items, stripped)
		}
		return nil
	})
}

// WatchWithContext implements cache.WatcherWithContext.
func (f *feed[T]) WatchWithContext(ctx context.Context, options metav1.ListOptions) (watch.Interface, error) {
	if f.isAbsent() {
		return nil, errAbsent // one question is enough: the list that follows
	}
	options.Watch = true
	watcher, err := f.request(&options).Watch(ctx)
	f.note(ctx, err)
	if err != nil && options.SendInitialEvents != nil {
		// The reflector would sleep on a refused connection without looking
		// whether it was stopped; an error of no known kind makes it list instead.
		return nil, errors.New(err.Error())
	}
	return watcher, err
}
