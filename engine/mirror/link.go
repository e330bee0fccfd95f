package mirror

import (
	"cmp"
	"slices"
	"sync"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/client-go/rest"

	"github.com/meshctl/meshctl/engine/kube"
	"github.com/meshctl/meshctl/engine/snapshot"
)

// Link is the way to one cluster for those who write there, or compare what was written. Who reads the cluster owns it, and says
// which Connection is in use. Its methods may be called from any goroutine.
type Link struct {
	mu        sync.Mutex
	now       LinkState
	listeners []Listener
}

// LinkState is what a Link is like at a time.
type LinkState struct {
	// Conn is the connection in use, or the last one that was; nil if there was none.
	Conn *Connection
	// Suspended: it gets no answers, and is not used until it does, or until there is another one.
	Suspended bool
	// Connecting: there is none, and the first one lists what exists.
	Connecting bool
	// Err is why nothing can be sent; nil if something can, or nothing is known yet.
	Err error
}

// is reports whether two states are the same.
func (s LinkState) is(o LinkState) bool {
	return s.Conn == o.Conn && s.Suspended == o.Suspended && s.Connecting == o.Connecting && (s.Err == nil) == (o.Err == nil) &&
		(s.Err == nil || s.Err.Error() == o.Err.Error())
}

// Listener receives what happens to a Link. Its methods are called without locks of the Link, and what they are about may be
// older than what the Link says then.
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

// Listen adds a listener, and tells it of the state that there is.
func (l *Link) Listen(to Listener) {
	l.mu.Lock()
	l.listeners = append(slices.Clip(l.listeners), to)
	l.mu.Unlock()
	to.Turned()
}

// Leave removes a listener.
func (l *Link) Leave(to Listener) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.listeners = slices.DeleteFunc(slices.Clone(l.listeners), func(o Listener) bool { return o == to })
}

// tell calls all listeners.
func (l *Link) tell(of func(Listener)) {
	l.mu.Lock()
	all := l.listeners
	l.mu.Unlock()
	for _, to := range all {
		of(to)
	}
}

// set changes the state, and reports whether it is another.
func (l *Link) set(f func(*LinkState)) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	before := l.now
	f(&l.now)
	return !l.now.is(before)
}

// change is set, and tells the listeners.
func (l *Link) change(f func(*LinkState)) {
	if l.set(f) {
		l.tell(Listener.Turned)
	}
}

// Begin says that a first connection lists what exists. Why one before it failed says nothing about it.
func (l *Link) Begin() {
	l.change(func(s *LinkState) {
		if s.Conn == nil {
			*s = LinkState{Connecting: true}
		}
	})
}

// Use puts a connection into use that has listed everything.
func (l *Link) Use(c *Connection) { l.change(func(s *LinkState) { *s = LinkState{Conn: c} }) }

// Lose says why nothing can be sent to the cluster, until Use or Resume.
func (l *Link) Lose(err error) {
	l.change(func(s *LinkState) { s.Suspended, s.Connecting, s.Err = s.Conn != nil, false, err })
}

// Resume says that a connection gets answers. If a probe has been asked for since, that one decides.
func (l *Link) Resume(c *Connection) {
	l.change(func(s *LinkState) {
		if s.Conn == c && len(c.asked) == 0 {
			s.Suspended, s.Err = false, nil
		}
	})
}

// Reset says that the cluster cannot be reached with what is known of it.
func (l *Link) Reset() { l.change(func(s *LinkState) { *s = LinkState{} }) }

// Probes of an API server that gave no answer to a write: the first after 0.5 s, the longer the more often that happened in a row,
// at most 10 s.
const (
	probeFirst = 500 * time.Millisecond
	probeMost  = 10 * time.Second
)

// Suspend stops a connection from being used, if it is in use, until the API server answers a probe, for which it asks the owner.
// If the server answers the first one, only the connection was broken, and there is no error. Failures is how often requests
// failed in a row. It reports whether it did; the listeners are not told.
func (l *Link) Suspend(c *Connection, failures int) bool {
	return l.set(func(s *LinkState) {
		if s.Conn == c && !s.Suspended {
			s.Suspended = true
			c.Ask(kube.Backoff(probeFirst, probeMost, failures-1))
		}
	})
}

// Connection is the Mirror of a cluster as its owner reads it with one credential.
type Connection struct {
	*Mirror
	// Client reads; what is written with it passes no fence.
	*kube.Client
	// Config is how to reach the cluster.
	Config *rest.Config

	// Cluster is its name, empty for the management cluster, and Plane whose objects in it are ours.
	Cluster string
	Plane   snapshot.Plane

	link  *Link
	asked chan time.Duration
}

// NewConnection prepares a connection of a Link.
func (l *Link) NewConnection(config *rest.Config, client *kube.Client, cluster string, plane snapshot.Plane) *Connection {
	return &Connection{
		Mirror: New(client.Hold), Client: client, Config: config, link: l, Cluster: cluster, Plane: plane, asked: make(chan time.Duration, 1),
	}
}

// Asked delivers after what time a probe is asked for.
func (c *Connection) Asked() <-chan time.Duration { return c.asked }

// Ask asks the owner for a probe after a pause, instead of the one that was asked for before.
func (c *Connection) Ask(pause time.Duration) {
	select {
	case <-c.asked:
	default:
	}
	select {
	case c.asked <- pause:
	default:
	}
}

// Link is whose connection it is.
func (c *Connection) Link() *Link { return c.link }

// Done handles the result of a request about a kind.
func (c *Connection) Done(kind snapshot.Kind, err error) {
	news := false
	switch {
	case err == nil:
		news = c.refuse(kind, "")
	case apierrors.IsNotFound(err):
		news = c.forget(kind)
	case kube.Answered(err):
		news = c.refuse(kind, cmp.Or(kube.Message(err), "the API server does not say why"))
	}
	if news {
		c.link.tell(func(to Listener) { to.Relisted(c, kind) })
	}
}

// Enter handles an event of a watch.
func (c *Connection) Enter(kind snapshot.Kind, o *Observed, deleted bool) {
	if of := o.id(kind); c.event(of, c.object(kind, o), deleted) {
		c.link.tell(func(to Listener) { to.Changed(c, []ID{of}) })
	}
}

// Written handles the response to a write of a listener. The others are told of it here: the event of the watch that follows says
// nothing new.
func (c *Connection) Written(by Listener, of ID, o Object) {
	if !c.written(of, o) {
		return
	}
	c.link.tell(func(to Listener) {
		if to != by {
			to.Changed(c, []ID{of})
		}
	})
}

// Replace handles a complete list.
func (c *Connection) Replace(kind snapshot.Kind, objects []*Observed, resourceVersion string) {
	list := make(map[ID]Object, len(objects))
	for _, o := range objects {
		list[o.id(kind)] = c.object(kind, o)
	}
	changed, complete := c.replace(kind, list, version(resourceVersion))
	c.link.tell(func(to Listener) {
		if complete {
			to.Changed(c, changed)
		} else {
			to.Relisted(c, kind)
		}
	})
}

// Follow handles what another process has in its mirror of an object.
func (c *Connection) Follow(of ID, o Object) {
	if c.event(of, o, false) {
		c.link.tell(func(to Listener) { to.Changed(c, []ID{of}) })
	}
}

// FollowAll says that Follow was called with all that the mirror of another process has of a kind, up to a version. Held reports
// whether that has an object.
func (c *Connection) FollowAll(kind snapshot.Kind, version uint64, held func(ID) bool) {
	changed, complete := c.keep(kind, version, held)
	c.link.tell(func(to Listener) {
		if complete {
			to.Changed(c, changed)
		} else {
			to.Relisted(c, kind)
		}
	})
}

// Refuse says why the API server rejects listing a kind; empty if it does not.
func (c *Connection) Refuse(kind snapshot.Kind, why string) {
	if c.refuse(kind, why) {
		c.link.tell(func(to Listener) { to.Relisted(c, kind) })
	}
}

// Absent says that the API server does not serve a kind.
func (c *Connection) Absent(kind snapshot.Kind) {
	if c.forget(kind) {
		c.link.tell(func(to Listener) { to.Relisted(c, kind) })
	}
}

func (c *Connection) object(kind snapshot.Kind, o *Observed) Object {
	if o.err != nil {
		c.link.tell(func(to Listener) { to.Incomparable(o.id(kind), o.err) })
	}
	return o.Object(kind, c.Cluster, c.Plane)
}

func (o *Observed) id(kind snapshot.Kind) ID {
	return ID{Kind: kind, Namespace: o.Namespace, Name: o.Name}
}
