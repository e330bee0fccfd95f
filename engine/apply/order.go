package apply

import (
	"context"
	"time"

	"github.com/meshctl/meshctl/engine/mirror"
	"github.com/meshctl/meshctl/engine/snapshot"
)

// This file keeps the items of a cluster and the ledger in step.

// announce enters what an Output will provide.
func (c *cluster) announce(d *delta) {
	if c.name == "" {
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, o := range d.put {
		if names := (&content{Content: o.Content}).provides(c.name); len(names) > 0 {
			i := c.item(mirror.IDOf(o.Ref))
			c.ledger.announce(i, c, without(names, i.current.provides(c.name)))
		}
	}
}

// put sets what is wanted for an item.
func (c *cluster) put(i *item, o *snapshot.Object, made *content) {
	c.ledger.announce(i, c, without(made.provides(c.name), i.current.provides(c.name)))
	c.ledger.retract(i, without(i.content.provides(c.name), made.provides(c.name)))
	c.ledger.intend(i, i.content.needs(c.name), made.needs(c.name), i.current.needs(c.name))
	i.held.Store(false)
	if i.content == nil || i.content.Content != made.Content {
		i.change(time.Now())
	}
	i.put(o, made)
	c.inheritFailure(i)
}

// unwant says that no object is wanted for an item.
func (c *cluster) unwant(i *item) {
	c.ledger.retract(i, i.content.provides(c.name))
	c.ledger.intend(i, i.content.needs(c.name), nil, i.current.needs(c.name))
	i.content, i.wide = nil, nil
	i.blockedAt = time.Time{}
	i.held.Store(false)
}

// target is the content to write now: the wanted one or, while proxies use what it
// no longer provides, one that has both.
func (c *cluster) target(i *item) *content {
	if i.current == nil || i.content.Content == i.current.Content {
		return i.content
	}
	if !c.used(i, without(i.current.provides(c.name), i.content.provides(c.name))) {
		return i.content
	}
	if i.wide == nil {
		spec := c.Widen(i.id.Kind, i.current.Spec, i.content.Spec)
		if spec == nil {
			return i.content
		}
		wide := *i.content.Content
		wide.Spec = spec
		relations := i.content.relations().With(*i.current.relations())
		i.wide = &content{Content: &wide, named: &relations}
	}
	return i.wide
}

// found says that an object is as a content has it.
func (c *cluster) found(i *item, as *content) {
	if i.current != as {
		c.ledger.wrote(i, c.name, i.current, as, false, 0)
		i.current = as
	}
}

// obstacle returns what keeps an item from being written, however long that takes: all
// requests that take the route would fail. It is false if nothing does.
func (c *cluster) obstacle(i *item) (obstacle, bool) {
	if c.name == "" {
		return obstacle{}, false
	}
	o, found := c.ledger.obstacle(without(i.content.needs(c.name), i.current.needs(c.name)))
	i.held.Store(found)
	return o, found
}

// hold keeps an item while there is an obstacle. It is a failure unless a cluster is
// connecting.
func (c *cluster) hold(i *item, o obstacle) step {
	i.blockedAt = time.Time{} // its patience begins when that has gone
	s := step{verb: fail}
	switch {
	case o.cluster.able.Load():
		s.code, s.message = snapshot.WriteFailed, obstructedMessage(o.item.id.Ref(o.cluster.name), o.name)
	case !o.cluster.silent.Load():
		c.block(i)
		return step{}
	default:
		s.code, s.message = snapshot.ClusterAwaited, awaitedMessage(o.cluster.name, o.name)
	}
	c.rest(i)
	return s
}

// waits reports whether an item has to wait for proxies before it is written or
// deleted, and queues it for later.
func (c *cluster) waits(i *item) bool {
	switch {
	case c.name == "":
		return false
	case i.object == nil:
		if !c.used(i, i.current.provides(c.name)) {
			return false
		}
	case !c.patient(i) || c.ledger.provided(without(i.content.needs(c.name), i.current.needs(c.name))):
		return false
	}
	c.block(i)
	return true
}

// used reports whether names that an item provides have to stay, because a proxy may
// have a route that uses one of them. That is bounded by Patience, but for a route that is
// held, and for a route that stays as it is: an object that still exists keeps what that
// needs. An object that is no longer wanted does not, so that no cluster can keep others
// from ending what they provide.
func (c *cluster) used(i *item, names []name) bool {
	i.kept = false
	if len(names) == 0 {
		return false
	}
	use := c.ledger.use(names)
	switch {
	case use == held:
		i.kept, i.blockedAt = true, time.Time{}
		return true
	case c.patient(i):
		// What an earlier process has written is read in all clusters first.
		return use > unused || c.ledger.reading.Load() > 0
	}
	i.kept = use == standing && i.object != nil
	return i.kept
}

// learn enters that an object is to be read, because an earlier process may have written it
// and proxies use what it has.
func (c *cluster) learn(of mirror.ID) {
	if c.name == "" || of.Kind.Info().Effect&snapshot.Relates == 0 {
		return
	}
	if l, exists := c.now.Conn.Find(of); exists && l.Ours() && l.Here && !l.Going {
		if i := c.items[of]; i == nil || i.current == nil {
			c.unread[of] = true
		}
	}
}

// reading reports whether it may have routes of an earlier process that were not read yet.
func (c *cluster) reading() bool {
	if c.name == "" || c.closed || c.gate.armed && !c.gate.open() || c.problem.Code != "" || c.now.Suspended {
		return false
	}
	return len(c.unread) > 0 || c.now.Connecting
}

// countReading makes reading known to other clusters.
func (c *cluster) countReading() {
	reading := c.reading()
	switch {
	case reading == c.counted:
	case reading:
		c.ledger.reading.Add(1)
	default:
		c.ledger.reading.Add(-1)
	}
	c.counted = reading
}

// adopt reads an object that an earlier process has written and that is not as it is
// wanted: proxies use what it has.
func (c *cluster) adopt(i *item) {
	if c.name == "" || i.id.Kind.Info().Effect&snapshot.Relates == 0 {
		return
	}
	c.mu.Lock()
	conn, writer, content := c.now.Conn, c.writer, i.content
	unknown := i.current == nil && c.writable()
	if unknown {
		l, exists := conn.Find(i.id)
		unknown = exists && l.Ours() && l.Here && !l.Going && !i.parked() && i.refusal.wait(object, time.Now()) <= 0
		if unknown && content != nil {
			wanted, err := content.get()
			unknown = err == nil && l.Spec != wanted
		}
	}
	c.mu.Unlock()
	if !unknown {
		return
	}
	ctx, cancel := context.WithTimeout(c.ctx, c.Timeout)
	defer cancel()
	current, err := readContent(ctx, writer, i.id, content)
	if err != nil {
		// It may be gone, or the server does not answer: a write will tell.
		c.Log.Debug("object cannot be read before it is changed", "object", i.id.Ref(c.name).String(), "error", err)
		return
	}
	c.mu.Lock()
	defer c.unlock()
	c.found(i, current)
}

// patient reports whether an item may wait (still).
func (c *cluster) patient(i *item) bool {
	return i.blockedAt.IsZero() || time.Since(i.blockedAt) < c.Pace.Patience
}

// blockedFor is the time between two looks at what an item waits for.
const blockedFor = 20 * time.Millisecond

// restTime is the time between two looks at what an item waits for that waits for a
// cluster to answer.
const restTime = 500 * time.Millisecond

// rest queues an item again when a cluster may have answered. Settled does not wait for
// it.
func (c *cluster) rest(i *item) {
	if i.resting {
		return
	}
	i.resting = true
	time.AfterFunc(restTime, func() {
		c.mu.Lock()
		defer c.unlock()
		i.resting = false
		if c.items[i.id] == i {
			c.enqueue(i, false)
			c.prune([]*item{i})
		}
	})
}

// block queues an item again when what it waits for may have happened.
func (c *cluster) block(i *item) {
	if i.kept {
		c.rest(i)
		return
	}
	if i.blockedAt.IsZero() {
		i.blockedAt = time.Now()
	}
	if i.blocked {
		return
	}
	route := i.object != nil && len(i.content.needs(c.name)) > 0
	i.blocked = true
	c.blocked++
	if route {
		c.blockedRoutes++
	}
	time.AfterFunc(blockedFor, func() {
		c.mu.Lock()
		defer c.unlock()
		i.blocked = false
		c.blocked--
		if route {
			c.blockedRoutes--
		}
		if c.items[i.id] == i {
			c.enqueue(i, false)
			c.prune([]*item{i})
		}
	})
}
