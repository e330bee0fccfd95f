package watch

import (
	"context"
	"fmt"
	"log/slog"
	"sync"
	"sync/atomic"

	"github.com/meshctl/meshctl/engine/kube"
	"github.com/meshctl/meshctl/engine/snapshot"
)

// plane is all feeds of one cluster over one connection. V is the view that
// they fill: snapshot.Cluster or snapshot.Management.
type plane[V any] struct {
	client  *kube.Client
	log     *slog.Logger
	feeds   []feeder
	refills []func(*V) bool

	// published is set once the view is in use; from then on changes call changed.
	published atomic.Bool
	changed   func()
	// progress is signalled as objects arrive before; failed with each request
	// that fails.
	progress, failed chan struct{}

	cancel context.CancelFunc
	group  sync.WaitGroup
}

func newPlane[V any](c *kube.Client, changed func()) *plane[V] {
	return &plane[V]{
		client: c, log: slog.Default(), changed: changed, cancel: func() {},
		progress: make(chan struct{}, 1), failed: make(chan struct{}, 1),
	}
}

// signal wakes the reader of a channel with room for one, if it is not awake.
func signal(c chan<- struct{}) {
	select {
	case c <- struct{}{}:
	default:
	}
}

// add makes the plane follow the objects that a lister selects into the list of
// the view that holds their type. Objects of the seed that have not changed stay
// the same.
func add[T object, V any, L interface {
	*V
	snapshot.ObjectLists
}](p *plane[V], seed L, lister *kube.Lister, strip func(T) bool) error {
	var example T
	kind, ok := snapshot.KindOfObject(example)
	if !ok || seed.List(kind) == nil {
		return fmt.Errorf("%T: %T has no list of this type", example, seed)
	}
	lister.Client, lister.Kind = p.client, kind
	at := func(view L) *[]T { return snapshot.Slice[T](view.List(kind)) }
	f := newFeed(lister, *at(seed), strip, p.onChange, func() { signal(p.failed) })
	f.rejected = func(k key, err error) { p.onRejected(kind, k, err) }
	p.feeds = append(p.feeds, f)
	p.refills = append(p.refills, func(view *V) bool {
		list, now := at(view), f.list()
		if snapshot.SameSlice(*list, now) {
			return false
		}
		*list = now
		return true
	})
	return nil
}

func (p *plane[V]) onChange() {
	if p.published.Load() {
		p.changed()
		return
	}
	signal(p.progress)
}

// start follows everything until stop.
func (p *plane[V]) start(ctx context.Context) {
	ctx, p.cancel = context.WithCancel(ctx)
	for _, f := range p.feeds {
		p.group.Go(func() { f.run(ctx) })
	}
}

// stop ends all feeds; when it returns, the lists change no more.
func (p *plane[V]) stop() {
	p.published.Store(false)
	p.cancel()
	p.group.Wait()
	p.client.CloseIdle()
}

// isFilled reports whether every list is complete.
func (p *plane[V]) isFilled() bool {
	for _, f := range p.feeds {
		if !f.isFilled() {
			return false
		}
	}
	return true
}

// trouble is the first kind that persistently cannot be read, and why.
func (p *plane[V]) trouble() (snapshot.Kind, error) {
	for _, f := range p.feeds {
		if k, err := f.trouble(); err != nil {
			return k, err
		}
	}
	return snapshot.NoKind, nil
}

// refill puts the current lists into view and reports whether any is new.
func (p *plane[V]) refill(view *V) bool {
	changed := false
	for _, refill := range p.refills {
		changed = refill(view) || changed
	}
	return changed
}
