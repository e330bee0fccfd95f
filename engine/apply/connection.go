package apply

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"
	"time"

	"github.com/go-logr/logr"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	utilnet "k8s.io/apimachinery/pkg/util/net"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/tools/cache"
	"k8s.io/klog/v2"

	"github.com/meshctl/meshctl/engine/snapshot"
)

// connection is one set of credentials to a cluster, in use: a client, the
// watches, and the mirror they keep. The cluster's lock guards its fields.
type connection struct {
	*wire
	mirror
	ctx    context.Context
	cancel context.CancelFunc
	group  sync.WaitGroup

	// suspect: a request got no answer; nothing is written until one does.
	suspect bool
	// problem is why it cannot take the place of another; empty if it may.
	problem string
}

// listener is told what a connection's watches see.
type listener interface {
	changed(c *connection, of id, l live, deleted bool)
	replaced(c *connection, kind snapshot.Kind, list map[id]live, version uint64)
	reported(c *connection, kind snapshot.Kind, err error)
}

// watchBackoff paces the tries to list a kind that cannot be listed. Its cap is
// how long an installed CRD or a returned API server may go unnoticed.
var watchBackoff = wait.Backoff{Duration: 250 * time.Millisecond, Factor: 2, Jitter: 0.5, Steps: 20, Cap: 8 * time.Second}

// watch runs a kind's watch until ctx is done. Errors reach the listener alone:
// it knows which are worth a line in the log.
func (c *connection) watch(ctx context.Context, kind snapshot.Kind, store *store) {
	quiet := logr.Discard()
	backoff := watchBackoff
	cache.NewReflectorWithOptions(&lister{connection: c, kind: kind, to: store.to}, &observed{}, store, cache.ReflectorOptions{
		Name: kind.String(), TypeDescription: kind.String(), Logger: &quiet, Backoff: &backoff,
	}).RunWithContext(klog.NewContext(ctx, quiet))
}

// close ends the watches and waits for them.
func (c *connection) close() {
	c.cancel()
	c.group.Wait()
	utilnet.CloseIdleConnectionsFor(c.http.Transport)
}

// lister lists and watches one kind in all namespaces.
type lister struct {
	*connection
	kind snapshot.Kind
	to   listener
	// absent: the API server said that it serves no such kind.
	absent atomic.Bool
}

// errAbsent makes the reflector ask by a list, as it does where streaming is not to be had.
var errAbsent = errors.New("the kind is not served")

// List implements cache.ListerWatcher.
func (l *lister) List(options metav1.ListOptions) (runtime.Object, error) {
	return l.ListWithContext(context.Background(), options)
}

// Watch implements cache.ListerWatcher.
func (l *lister) Watch(options metav1.ListOptions) (watch.Interface, error) {
	return l.WatchWithContext(context.Background(), options)
}

// ListWithContext implements cache.ListerWatcherWithContext.
func (l *lister) ListWithContext(ctx context.Context, options metav1.ListOptions) (runtime.Object, error) {
	list := &observedList{}
	err := l.Get().AbsPath(path(id{kind: l.kind}, "")...).
		SpecificallyVersionedParams(&options, l.params, listVersion).Do(ctx).Into(list)
	l.report(ctx, err)
	return list, err
}

// WatchWithContext implements cache.ListerWatcherWithContext.
func (l *lister) WatchWithContext(ctx context.Context, options metav1.ListOptions) (watch.Interface, error) {
	if l.absent.Load() {
		return nil, errAbsent // one question is enough: the list that follows
	}
	options.Watch = true
	w, err := l.Get().AbsPath(path(id{kind: l.kind}, "")...).
		SpecificallyVersionedParams(&options, l.params, listVersion).Watch(ctx)
	l.report(ctx, err)
	return w, err
}

func (l *lister) report(ctx context.Context, err error) {
	l.absent.Store(apierrors.IsNotFound(err))
	if ctx.Err() == nil && !apierrors.IsResourceExpired(err) && !apierrors.IsGone(err) && !apierrors.IsInvalid(err) {
		l.to.reported(l.connection, l.kind, err)
	}
}

// probe asks the API server for a sign of life: nil if it answers, whatever it says of the object.
func (c *connection) probe(ctx context.Context, kind snapshot.Kind) error {
	ctx, cancel := context.WithTimeout(ctx, probeTimeout)
	defer cancel()
	err := c.Get().AbsPath(path(id{kind: kind}, "")...).Param("limit", "1").Do(ctx).Error()
	if classify(err) == unreachable {
		return err
	}
	return nil
}

const probeTimeout = 10 * time.Second

// store hands what a reflector sees to the listener.
type store struct {
	connection     *connection
	kind           snapshot.Kind
	cluster, owner string
	to             listener
}

// Add implements cache.ReflectorStore.
func (s *store) Add(object any) error { return s.event(object, false) }

// Update implements cache.ReflectorStore.
func (s *store) Update(object any) error { return s.event(object, false) }

// Delete implements cache.ReflectorStore.
func (s *store) Delete(object any) error { return s.event(object, true) }

// Resync implements cache.ReflectorStore.
func (s *store) Resync() error { return nil }

func (s *store) event(object any, deleted bool) error {
	o := object.(*observed)
	s.to.changed(s.connection, s.id(o), o.live(s.kind, s.cluster, s.owner), deleted)
	return nil
}

// Replace implements cache.ReflectorStore.
func (s *store) Replace(objects []any, resourceVersion string) error {
	list := make(map[id]live, len(objects))
	for _, object := range objects {
		o := object.(*observed)
		list[s.id(o)] = o.live(s.kind, s.cluster, s.owner)
	}
	s.to.replaced(s.connection, s.kind, list, version(resourceVersion))
	return nil
}

func (s *store) id(o *observed) id {
	return id{kind: s.kind, namespace: o.Namespace, name: o.Name}
}
