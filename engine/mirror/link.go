package mirror

import (
	"context"
	"errors"
	"log/slog"
	"sync"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/client-go/rest"

	"github.com/meshctl/meshctl/engine/kube"
	"github.com/meshctl/meshctl/engine/snapshot"
)

// LinkOptions are the same for all links of one user. Kinds is required, and Plane.
type LinkOptions struct {
	// Kinds are those of which what exists is known.
	Kinds []snapshot.Kind
	// Plane is the management plane whose objects are its own.
	Plane snapshot.Plane
	// Log receives what keeps a connection from working.
	Log *slog.Logger
	// Warnings receives those of the API server.
	Warnings rest.WarningHandler
	// Trusted: what the API server may send has no bounds.
	Trusted bool
}

// Link is the way to one cluster. Each configuration gets a Connection of its own, which is in use as soon as it has listed
// everything; until then, the one before is. One that gets no answer is suspended until a probe gets one. Its methods may be
// called from any goroutine.
type Link struct {
	LinkOptions
	cluster string
	// ctx ends all connections; group has their goroutines.
	ctx   context.Context
	group *sync.WaitGroup
	to    Listener

	mu   sync.Mutex
	now  LinkState
	next *Connection
}

// NewLink prepares a Link without I/O. Its connections end with ctx, and their goroutines are in the group.
func NewLink(ctx context.Context, group *sync.WaitGroup, cluster string, o LinkOptions, to Listener) *Link {
	return &Link{LinkOptions: o, cluster: cluster, ctx: ctx, group: group, to: to}
}

// LinkState is what a Link is like at a time.
type LinkState struct {
	// Conn is the connection in use; nil if there is none.
	Conn *Connection
	// Suspended: it got no answer, and is not used until it gets one.
	Suspended bool
	// Connecting: there is none in use, and one lists what exists.
	Connecting bool
	// Err is why there is no connection that works; nil if there is one, or nothing is known yet.
	Err error
}

// is reports whether two states are the same.
func (s LinkState) is(o LinkState) bool {
	return s.Conn == o.Conn && s.Suspended == o.Suspended && s.Connecting == o.Connecting && (s.Err == nil) == (o.Err == nil) &&
		(s.Err == nil || s.Err.Error() == o.Err.Error())
}

// Listener receives what happens to a link. Its methods are called without locks of the link, and what they are about may be
// older than what the link says then.
type Listener interface {
	// Turned: the state of the link is another.
	Turned()
	// Changed: other objects exist under these names. For a connection that is not in use, that is nothing.
	Changed(c *Connection, objects []ID)
	// Relisted: what is known of a kind is complete now, or not any more.
	Relisted(c *Connection, kind snapshot.Kind)
	// Incomparable: an object has no digest.
	Incomparable(of ID, err error)
}

// State is what the link is like now.
func (l *Link) State() LinkState {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.now
}

// set changes the state under the lock, and reports whether it is another.
func (l *Link) set(f func(*LinkState)) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	before := l.now
	f(&l.now)
	l.now.Connecting = l.now.Conn == nil && l.next != nil
	return !l.now.is(before)
}

// change is set, and tells the listener.
func (l *Link) change(f func(*LinkState)) {
	if l.set(f) {
		l.to.Turned()
	}
}

// listPatience is how long a cluster may take to list all objects before that is an error. The listing continues.
const listPatience = 30 * time.Second

var errListing = errors.New("the API server has not finished listing objects; check its load and the network")

// Connect starts a connection with another configuration.
func (l *Link) Connect(config *rest.Config) {
	var budget *kube.Budget
	if !l.Trusted {
		budget = kube.NewBudget(kube.Bounds{})
	}
	client, err := dial(config, l.Kinds, l.Warnings, budget)
	if err != nil {
		l.change(func(s *LinkState) {
			l.dropNext()
			if s.Conn == nil {
				s.Err = err
			}
		})
		return
	}
	ctx, cancel := context.WithCancel(l.ctx)
	c := &Connection{Client: client, Mirror: New(l.Kinds, client.Hold), link: l, ctx: ctx, cancel: cancel, hurry: make(chan struct{}, 1)}
	l.change(func(s *LinkState) {
		l.dropNext()
		l.next = c
		if s.Conn == nil {
			s.Err = nil // why the one before failed says nothing about this one
		}
	})
	c.group.Go(func() { c.expectLists() })
	for _, kind := range l.Kinds {
		c.group.Go(func() { c.watch(kind) })
	}
}

// Close ends all connections.
func (l *Link) Close() {
	l.change(func(s *LinkState) {
		l.dropNext()
		l.drop(s.Conn)
		*s = LinkState{}
	})
}

func (l *Link) dropNext() {
	l.drop(l.next)
	l.next = nil
}

// drop closes a connection, if there is one, without waiting.
func (l *Link) drop(c *Connection) {
	if c != nil {
		c.cancel()
		l.group.Go(c.close)
	}
}

// promote puts the next connection into use if it is ready.
func (l *Link) promote() {
	l.change(func(s *LinkState) {
		if l.next == nil || !l.next.ready() {
			return
		}
		l.drop(s.Conn)
		*s = LinkState{Conn: l.next}
		l.next = nil
	})
}

// failed handles a request of a connection that got no answer.
func (l *Link) failed(c *Connection, err error) {
	problem := kube.Message(err)
	l.mu.Lock()
	inUse, first, news := c == l.now.Conn, c == l.next && l.now.Conn == nil, c.problem != problem
	c.problem = problem
	l.mu.Unlock()
	switch {
	case inUse:
		if l.Suspend(c, err, 1) {
			l.to.Turned()
		}
	case first:
		l.change(func(s *LinkState) {
			if s.Conn == nil {
				s.Err = err
			}
		})
	case news:
		l.Log.Warn("the new connection to the cluster does not work; the previous one stays in use", "cluster", l.cluster, "error", problem)
	}
}

// Probes of an API server that gave no answer: after 0.5 s, doubled each time, at
// most 10 s apart, each bounded by probeTimeout.
const (
	probeFirst   = 500 * time.Millisecond
	probeMost    = 10 * time.Second
	probeTimeout = 10 * time.Second
)

// Suspend stops a connection from being used, if it is in use, until the API server answers a probe. The first one is after a
// pause, which is longer the more often requests failed in a row. If the server answers that one, only the connection was broken,
// and there is no error. It reports whether it did; the listener is not told.
func (l *Link) Suspend(c *Connection, err error, failures int) bool {
	return l.set(func(s *LinkState) {
		if s.Conn == c && !s.Suspended {
			s.Suspended = true
			c.group.Go(func() { l.probe(c, err, kube.Backoff(probeFirst, probeMost, failures-1)) })
		}
	})
}

// probe probes until the API server answers.
func (l *Link) probe(c *Connection, why error, pause time.Duration) {
	for failures := 1; ; failures++ {
		select {
		case <-c.ctx.Done():
			return
		case <-c.hurry:
			failures = 0
		case <-time.After(pause):
		}
		err := c.Probe(c.ctx, probeTimeout)
		if c.ctx.Err() != nil {
			return
		}
		if err == nil {
			l.change(func(s *LinkState) {
				if s.Conn == c {
					s.Suspended, s.Err = false, nil
				}
			})
			return
		}
		l.change(func(s *LinkState) {
			if s.Conn == c {
				s.Err = why
			}
		})
		pause = kube.Jitter(kube.Backoff(probeFirst, probeMost, failures))
	}
}

// Hurry makes a connection that waits for its API server ask it at once.
func (l *Link) Hurry() {
	if c := l.State().Conn; c != nil {
		select {
		case c.hurry <- struct{}{}:
		default:
		}
	}
}

// Connection is a client of a cluster with one credential, its watches, and the
// Mirror that they keep.
type Connection struct {
	*kube.Client
	*Mirror
	link   *Link
	ctx    context.Context
	cancel context.CancelFunc
	group  sync.WaitGroup
	// hurry receives a value when a probe that failed may succeed now.
	hurry chan struct{}
	// problem is why it cannot replace the one in use; empty if that is not known. The lock of the link guards it.
	problem string
}

// expectLists makes it an error if the first connection is not ready in time.
func (c *Connection) expectLists() {
	select {
	case <-c.ctx.Done():
	case <-time.After(listPatience):
		c.link.change(func(s *LinkState) {
			if c.link.next == c && s.Conn == nil && s.Err == nil {
				s.Err = errListing
			}
		})
	}
}

// watch watches a kind until the connection ends.
func (c *Connection) watch(kind snapshot.Kind) {
	lister := &kube.Lister{Client: c.Client, Kind: kind, Done: func(err error) { c.done(kind, err) }}
	lister.Run(c.ctx, &store{Connection: c, kind: kind})
}

// done handles the result of a list or watch request.
func (c *Connection) done(kind snapshot.Kind, err error) {
	var news bool
	switch {
	case err == nil:
		news = c.refuse(kind, "")
	case apierrors.IsNotFound(err):
		news = c.forget(kind)
	case kube.Answered(err):
		reason := kube.Message(err)
		if news = c.refuse(kind, reason); news {
			c.link.Log.Warn("cluster rejects listing a kind", "cluster", c.link.cluster, "kind", kind.String(), "error", reason)
		}
	default:
		c.link.failed(c, err)
		return
	}
	if news {
		c.link.to.Relisted(c, kind)
	}
	c.link.promote()
}

// close ends the watches and waits for them.
func (c *Connection) close() {
	c.cancel()
	c.group.Wait()
	c.CloseIdle()
}

// store passes what a reflector sees to the mirror.
type store struct {
	*Connection
	kind snapshot.Kind
}

// Add implements cache.ReflectorStore.
func (s *store) Add(object any) error { return s.enter(object, false) }

// Update implements cache.ReflectorStore.
func (s *store) Update(object any) error { return s.enter(object, false) }

// Delete implements cache.ReflectorStore.
func (s *store) Delete(object any) error { return s.enter(object, true) }

// Resync implements cache.ReflectorStore.
func (s *store) Resync() error { return nil }

func (s *store) enter(object any, deleted bool) error {
	o := object.(*Observed)
	if of := s.id(o); s.event(of, s.live(o), deleted) {
		s.link.to.Changed(s.Connection, []ID{of})
	}
	return nil
}

// Replace implements cache.ReflectorStore.
func (s *store) Replace(objects []any, resourceVersion string) error {
	list := make(map[ID]Object, len(objects))
	for _, object := range objects {
		o := object.(*Observed)
		list[s.id(o)] = s.live(o)
	}
	changed, complete := s.replace(s.kind, list, version(resourceVersion))
	if complete {
		s.link.to.Changed(s.Connection, changed)
	} else {
		s.link.to.Relisted(s.Connection, s.kind)
	}
	s.link.promote()
	return nil
}

func (s *store) live(o *Observed) Object {
	if o.err != nil {
		s.link.to.Incomparable(s.id(o), o.err)
	}
	return o.Object(s.kind, s.link.cluster, s.link.Plane)
}

func (s *store) id(o *Observed) ID {
	return ID{Kind: s.kind, Namespace: o.Namespace, Name: o.Name}
}
