package watch

import (
	"context"
	"fmt"
	"log/slog"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/meshctl/meshctl/engine/kube"
	"github.com/meshctl/meshctl/engine/mirror"
	"github.com/meshctl/meshctl/engine/snapshot"
)

// clusterCache is all feeds of one cluster over one connection. V is the view
// that they fill: snapshot.Cluster or snapshot.Management.
type clusterCache[V any] struct {
	client *kube.Client
	// conn is what writers have of it.
	conn  *mirror.Connection
	log   *slog.Logger
	feeds []feeder
	// configMaps has further feeds; nil for none.
	configMaps *configMaps
	// copiers put the list of one feed each into a view, and report whether it is new.
	copiers []func(*V) bool

	// published is set once the view is in use; from then on changes call changed.
	published atomic.Bool
	changed   func()
	// progress is signalled as objects arrive before that; failed with each
	// request that fails.
	progress, failed chan struct{}

	// silence is how long a watch may deliver nothing, and silences counts those that
	// did; logged are the kinds of which that was logged.
	silence  time.Duration
	silences *atomic.Int64
	// collect is onChange for kinds whose changes are collected.
	collect *collector
	logged  sync.Map

	cancel context.CancelFunc
	group  sync.WaitGroup
}

func newClusterCache[V any](client *kube.Client, conn *mirror.Connection, changed func()) *clusterCache[V] {
	c := &clusterCache[V]{
		client: client, conn: conn, log: slog.Default(), changed: changed, cancel: func() {}, silences: &atomic.Int64{},
		progress: make(chan struct{}, 1), failed: make(chan struct{}, 1),
	}
	c.collect = &collector{call: c.onChange, dropped: &atomic.Int64{}}
	return c
}

// signal writes to a channel with room for one, unless a signal is waiting there.
func signal(c chan<- struct{}) {
	select {
	case c <- struct{}{}:
	default:
	}
}

// add makes the cache watch the objects that a lister selects, for the list of
// the view that holds their type. Objects of the seed that have not changed keep
// their pointers.
func add[T object, V any, L interface {
	*V
	snapshot.ObjectLists
}](c *clusterCache[V], seed L, lister *kube.Lister, strip func(T) bool) error {
	return addFeed(c, seed, kindOf[T](), lister, strip, func(f *feed[T]) feeder { return f })
}

// kindOf is the kind of a type; NoKind if it is none of an Input.
func kindOf[T object]() snapshot.Kind {
	var example T
	kind, _ := snapshot.KindOfObject(example)
	return kind
}

// addFeed is add for a kind, with what is made of the feed.
func addFeed[T object, V any, L interface {
	*V
	snapshot.ObjectLists
}](c *clusterCache[V], seed L, kind snapshot.Kind, lister *kube.Lister, strip func(T) bool, as func(*feed[T]) feeder) error {
	if seed.List(kind) == nil {
		return fmt.Errorf("%T has no list of %s", seed, kind)
	}
	listIn := func(view L) *[]T { return snapshot.Slice[T](view.List(kind)) }
	lister.Client, lister.Kind, lister.Silent = c.client, kind, func() { c.onSilence(kind) }
	changed := c.onChange
	if changesInGroups(kind) {
		changed = c.onChangeInGroup
	}
	f := newFeed(lister, *listIn(seed), strip, changed, func() { signal(c.failed) })
	f.rejected = func(k key, err error) { c.onRejected(kind, k, err) }
	f.mayBeDenied = kind.Info().Later
	c.feeds = append(c.feeds, as(f))
	c.copiers = append(c.copiers, func(view *V) bool {
		list, now := listIn(view), f.list()
		if snapshot.SameSlice(*list, now) {
			return false
		}
		*list = now
		return true
	})
	return nil
}

// union is what the feeds of single objects of one kind hold together.
type union[T object] struct {
	feeds []*feed[T]
	lists [][]T
	all   []T
}

// list returns the objects: the same slice until something changes.
func (u *union[T]) list() []T {
	var lists [][]T
	for _, f := range u.feeds {
		if list := f.list(); len(list) > 0 {
			lists = append(lists, list)
		}
	}
	switch {
	case slices.EqualFunc(u.lists, lists, snapshot.SameSlice):
	case len(lists) == 1:
		u.all = lists[0]
	default:
		u.all = slices.Concat(lists...)
		slices.SortFunc(u.all, func(a, b T) int { return keyOf(a).compare(keyOf(b)) })
	}
	u.lists = lists
	return u.all
}

func (c *clusterCache[V]) onChange() {
	if c.published.Load() {
		c.changed()
		return
	}
	signal(c.progress)
}

// onChangeInGroup is onChange for an object that rarely changes alone.
func (c *clusterCache[V]) onChangeInGroup() {
	if c.published.Load() {
		c.collect.note()
		return
	}
	signal(c.progress)
}

// start runs all feeds until stop.
func (c *clusterCache[V]) start(ctx context.Context) {
	ctx, c.cancel = context.WithCancel(ctx)
	c.configMaps.start(ctx)
	for _, f := range c.feeds {
		c.group.Go(func() { f.run(ctx, c.silence) })
	}
}

// stop ends all feeds; when it returns, the lists no longer change.
func (c *clusterCache[V]) stop() {
	c.published.Store(false)
	c.cancel()
	c.configMaps.stop()
	c.group.Wait()
	c.client.CloseIdle()
}

// isFilled reports whether every list is complete, or may not be read. Only who may publish the cache calls
// it, and only before that.
func (c *clusterCache[V]) isFilled() bool {
	for _, f := range c.feeds {
		if !f.isFilled() && !f.isDenied() {
			return false
		}
	}
	if c.configMaps == nil {
		return true
	}
	var view V
	c.copyTo(&view) // the other lists say which ConfigMaps are to be read
	return c.configMaps.isFilled()
}

// allFeeds are the feeds that there are now.
func (c *clusterCache[V]) allFeeds() []feeder {
	all := slices.Clone(c.feeds)
	for _, f := range c.configMaps.running() {
		all = append(all, f)
	}
	return all
}

// unreadable returns the first kind that persistently cannot be read, and why.
func (c *clusterCache[V]) unreadable() (snapshot.Kind, error) {
	for _, f := range c.allFeeds() {
		if err := f.persistentError(); err != nil {
			return f.kind(), err
		}
	}
	return snapshot.NoKind, nil
}

// copyTo puts the current lists into view and reports whether any is new.
func (c *clusterCache[V]) copyTo(view *V) bool {
	changed := false
	for _, copyList := range c.copiers {
		changed = copyList(view) || changed
	}
	return changed
}
