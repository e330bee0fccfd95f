package kube

import (
	"context"
	"errors"
	"sync/atomic"
	"time"

	"github.com/go-logr/logr"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/cache"
	"k8s.io/klog/v2"

	"github.com/meshctl/meshctl/engine/snapshot"
)

// IsAbsent reports that an object, or its whole type, does not exist.
func IsAbsent(err error) bool { return apierrors.IsNotFound(err) || meta.IsNoMatchError(err) }

// Lister lists and watches the objects of one kind. It is a
// cache.ListerWatcherWithContext; Run runs a reflector with it.
type Lister struct {
	Client *Client
	Kind   snapshot.Kind
	// Namespace, Fields and Labels limit the objects; empty does not.
	Namespace, Fields, Labels string
	// Page, if set, replaces each list that arrives.
	Page func(runtime.Object) (runtime.Object, error)
	// Done, if set, is called after each request with its error. IsAbsent says
	// that the server does not serve the kind: a server that has just started
	// answers 503 until it knows its CRDs, so this answer can be trusted.
	Done func(error)
	// Silence is how long a watch may deliver neither an event nor a bookmark;
	// DefaultSilence if zero. Then it ends and the objects are listed: in one answer
	// instead of a stream, until a watch delivers something again.
	Silence time.Duration
	// Silent, if set, is called for each watch that ends because of that.
	Silent func()
	// Asks: the server is asked first whether the kind may be listed, so that one which administrators need not allow leaves no
	// refused requests in its audit log.
	Asks bool

	// absent: the server does not serve the kind. silent: the last watch delivered
	// nothing.
	absent, silent atomic.Bool
	heard          atomic.Pointer[time.Time]
	// arrived is what came of a list that is not complete, in bytes.
	arrived atomic.Int64
	// refusals counts answers in a row that the kind is not served, or may not be listed.
	refusals atomic.Int32
}

// listBackoff is the backoff of requests for a kind that cannot be listed. Its cap bounds
// how long the return of an API server goes unnoticed: twice or three times this.
var listBackoff = wait.Backoff{Duration: 500 * time.Millisecond, Factor: 2, Jitter: 0.5, Steps: 10, Cap: time.Second}

// A kind that the server does not serve, or does not let us list, is asked for less often:
// after a pause on top of listBackoff, doubled each time. The longest one bounds how long
// a newly installed CRD goes unnoticed, and costs one small request in that time.
const restFirst, restMost = 250 * time.Millisecond, 10 * time.Second

// Run lists and watches into a store until ctx ends, and returns when nothing
// more will be stored.
func (l *Lister) Run(ctx context.Context, store cache.ReflectorStore) {
	// The reflector would log each failed request of each kind. Done is called with
	// the errors instead.
	quiet := logr.Discard()
	backoff := listBackoff
	// The type is not set: Page or a decoder may replace an object by one of
	// another type, which must reach the store.
	r := cache.NewReflectorWithOptions(l, nil, arriving{store, l}, cache.ReflectorOptions{
		Name: l.Kind.Info().Resource, TypeDescription: l.Kind.String(), Logger: &quiet, Backoff: &backoff,
	})
	r.WatchListPageSize = pageSize
	r.RunWithContext(klog.NewContext(ctx, quiet))
}

// pageSize bounds the objects in one answer. The memory that lists need for a moment does
// not grow with the cluster.
const pageSize = 250

func (l *Lister) request(options *metav1.ListOptions) *rest.Request {
	options.FieldSelector, options.LabelSelector = l.Fields, l.Labels
	return l.Client.Get().AbsPath(Path(l.Kind, l.Namespace, "", "")...).
		SpecificallyVersionedParams(options, metav1.ParameterCodec, optionsVersion)
}

// done reports the result of a request. If the server asks the client to list
// again, that is no failure.
func (l *Lister) done(ctx context.Context, err error) {
	if ctx.Err() != nil || apierrors.IsResourceExpired(err) || apierrors.IsGone(err) || apierrors.IsInvalid(err) {
		return
	}
	l.absent.Store(IsAbsent(err))
	if IsAbsent(err) {
		l.hear()
	}
	if IsAbsent(err) || apierrors.IsForbidden(err) {
		l.refusals.Add(1)
	} else {
		l.refusals.Store(0)
	}
	if l.Done != nil {
		l.Done(err)
	}
}

// List implements cache.ListerWatcher; the reflector calls ListWithContext.
func (l *Lister) List(options metav1.ListOptions) (runtime.Object, error) {
	return l.ListWithContext(context.Background(), options)
}

// Watch implements cache.ListerWatcher; the reflector calls WatchWithContext.
func (l *Lister) Watch(options metav1.ListOptions) (watch.Interface, error) {
	return l.WatchWithContext(context.Background(), options)
}

// ListWithContext implements cache.ListerWithContext.
func (l *Lister) ListWithContext(ctx context.Context, options metav1.ListOptions) (runtime.Object, error) {
	if err := l.rest(ctx); err != nil {
		return nil, err
	}
	if options.Continue == "" {
		if l.Asks {
			if err := l.permitted(ctx); err != nil {
				l.done(ctx, err)
				return nil, err
			}
		}
		l.arrivals()
		// From its cache, an API server would answer with all pages at once.
		options.ResourceVersion, options.ResourceVersionMatch = "", ""
	}
	list, err := l.request(&options).Do(ctx).Get()
	l.done(ctx, err)
	if err == nil {
		l.hear()
	}
	if err == nil && l.Page != nil {
		list, err = l.Page(list)
	}
	if err == nil {
		l.arriveAll(list)
	}
	return list, err
}

// rest waits before a kind is asked for again that the server refused. It returns the
// error of ctx if ctx ends first.
func (l *Lister) rest(ctx context.Context) error {
	refusals := l.refusals.Load()
	if refusals == 0 {
		return nil
	}
	pause := time.NewTimer(Backoff(restFirst, restMost, int(refusals)))
	defer pause.Stop()
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-pause.C:
		return nil
	}
}

// errAbsent makes the reflector list instead, as it does on servers without
// streaming lists.
var errAbsent = errors.New("the kind is not served")

// WatchWithContext implements cache.WatcherWithContext.
func (l *Lister) WatchWithContext(ctx context.Context, options metav1.ListOptions) (watch.Interface, error) {
	if l.absent.Load() {
		return nil, errAbsent // one request is enough: the list that follows
	}
	if l.Asks && options.SendInitialEvents != nil {
		return nil, errUnstreamed
	}
	if l.silent.Load() && options.SendInitialEvents != nil {
		return nil, errSilent
	}
	if options.SendInitialEvents != nil {
		l.arrivals()
	}
	options.Watch = true
	watcher, err := l.request(&options).Watch(ctx)
	l.done(ctx, err)
	if err != nil && options.SendInitialEvents != nil {
		// After a refused connection, the reflector would sleep without checking
		// whether it was stopped; an error of an unknown type makes it list instead.
		return nil, errors.New(err.Error())
	}
	if err != nil {
		return nil, err
	}
	return newAudible(ctx, l, watcher), nil
}
