package apply

import (
	"context"
	"maps"
	"sync"
	"time"

	"k8s.io/client-go/rest"

	"github.com/meshctl/meshctl/engine/snapshot"
)

// cluster is the life of one API server in the sink: what is wanted there, what
// is there, and the work between the two. It waits for no other cluster, but for
// the management plane's statuses (Sink.putStatusesLast).
type cluster struct {
	*shared
	name  string
	kinds []snapshot.Kind
	ctx   context.Context
	group *sync.WaitGroup

	mu     sync.Mutex
	wake   *sync.Cond
	closed bool
	// items are all ids that are wanted or being worked on.
	items map[id]*item
	gate  gate
	// conn is the connection in use, ready at least once; next is one that is
	// to take its place as soon as it is ready.
	conn, next *connection
	queue      queue
	// racing counts items that wait for another look after a conflict.
	racing   int
	batch    *batch
	failures map[id]snapshot.Failure
	// problem is the failure of the cluster as a whole; zero if none.
	problem snapshot.Failure
	gauges  gauges
}

// gate is what an Output permits.
type gate struct {
	// armed: there was an Output. listed: it names the cluster. frozen: it freezes it.
	armed, listed, frozen bool
	// clusters says of each registered cluster whether it is frozen; set on the
	// management plane, where the discovered objects of frozen clusters are kept.
	clusters map[string]bool
}

func (g gate) open() bool { return g.armed && g.listed && !g.frozen }

func newCluster(ctx context.Context, group *sync.WaitGroup, s *shared, name string) *cluster {
	kinds := snapshot.Kinds(snapshot.ManagedSide, snapshot.Write)
	if name == "" {
		kinds = snapshot.Kinds(snapshot.ManagementSide, snapshot.Write|snapshot.WriteStatus)
	}
	c := &cluster{
		shared: s, name: name, kinds: kinds, ctx: ctx, group: group,
		items: map[id]*item{}, queue: newQueue(kinds), failures: map[id]snapshot.Failure{},
	}
	c.wake = sync.NewCond(&c.mu)
	c.gauges = s.metrics.gauges(name)
	context.AfterFunc(ctx, func() {
		c.mu.Lock()
		defer c.mu.Unlock()
		c.wake.Broadcast()
	})
	for range s.Workers {
		group.Go(c.work)
	}
	return c
}

// connect starts a connection with cfg; the one in use stays until it is ready.
func (c *cluster) connect(cfg *rest.Config) {
	client, err := dial(cfg, c.kinds, warnings{c.Log, c.name})
	c.mu.Lock()
	defer c.unlock()
	c.drop(c.next)
	c.next = nil
	if err != nil {
		c.complain(err.Error())
		return
	}
	ctx, cancel := context.WithCancel(c.ctx)
	conn := &connection{Client: client, mirror: newMirror(c.kinds), ctx: ctx, cancel: cancel}
	c.next = conn
	if c.conn == nil && c.problem.Code != "" {
		c.problem = snapshot.Failure{}
		c.announce()
	}
	time.AfterFunc(listPatience, func() { c.overdue(conn) })
	for _, kind := range c.kinds {
		conn.group.Go(func() {
			conn.watch(ctx, kind, &store{connection: conn, kind: kind, cluster: c.name, owner: c.Namespace, to: c})
		})
	}
}

// disconnect gives up the connections and what is known by them.
func (c *cluster) disconnect() {
	c.mu.Lock()
	defer c.unlock()
	c.drop(c.conn)
	c.drop(c.next)
	c.conn, c.next = nil, nil
	c.flush()
	c.problem = snapshot.Failure{}
	clear(c.failures)
	c.announce()
}

// drop closes a connection, if there is one, without waiting.
func (c *cluster) drop(conn *connection) {
	if conn != nil {
		conn.cancel()
		c.group.Go(conn.close)
	}
}

// abandoned reports that there is nothing left to do for the cluster, ever.
func (c *cluster) abandoned() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.conn == nil && c.next == nil && len(c.items) == 0
}

// stop ends the workers.
func (c *cluster) stop() {
	c.mu.Lock()
	defer c.unlock()
	c.closed = true
	c.wake.Broadcast()
	c.flush()
}

// armed reports that the cluster has been told of an Output.
func (c *cluster) armed() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.gate.armed
}

// unlock ends a critical section, and tells whom it may concern.
func (c *cluster) unlock() {
	done := c.closeBatch()
	c.measure()
	if done != nil {
		c.telling.Add(1)
	}
	c.mu.Unlock()
	if done != nil {
		c.publish(*done)
		c.telling.Add(-1)
	}
	c.stir()
}

// update takes in what a new Output changes.
func (c *cluster) update(d *delta, made map[*snapshot.Object]*content, g gate) {
	c.mu.Lock()
	defer c.unlock()
	was := c.gate
	c.gate = g
	touched := c.want(d, made)
	switch {
	case !g.open():
		c.flush()
		if !g.listed {
			clear(c.failures)
			c.announce()
		}
	case !was.open():
		c.sweep(true)
	default:
		if !maps.Equal(was.clusters, g.clusters) {
			c.sweepGarbage()
		}
		for _, i := range touched {
			c.enqueue(i, true)
		}
	}
	if !c.writable() {
		c.prune(touched)
	}
}

// want updates the items and returns those that changed. Drops come before puts:
// an object may move from one part to another.
func (c *cluster) want(d *delta, made map[*snapshot.Object]*content) []*item {
	if d == nil {
		return nil
	}
	var touched []*item
	for _, s := range d.dropStatus {
		if i := c.items[idOf(s.Ref)]; i != nil {
			i.status, i.statusOnly = nil, false
			touched = append(touched, i)
		}
	}
	for _, s := range d.putStatus {
		i := c.item(idOf(s.Ref))
		wish := &statusWish{Status: s}
		if i.status != nil {
			wish.settled = i.status.settled
		}
		i.status = wish
		i.statusOnly = i.statusOnly || !i.queued
		touched = append(touched, i)
	}
	for _, o := range d.drop {
		if i := c.items[idOf(o.Ref)]; i != nil {
			i.was = i.parents()
			i.object, i.content = nil, nil
			c.recovered(i.id)
			touched = append(touched, i)
		}
	}
	for _, o := range d.put {
		i := c.item(idOf(o.Ref))
		i.put(o, made[o])
		touched = append(touched, i)
	}
	return touched
}

func (c *cluster) item(of id) *item {
	i := c.items[of]
	if i == nil {
		i = &item{id: of}
		c.items[of] = i
	}
	return i
}

// holdStatuses adds a reason to keep statuses in the queue (1), or takes one
// away (-1).
func (c *cluster) holdStatuses(by int) {
	c.mu.Lock()
	defer c.unlock()
	c.queue.held += by
	c.wake.Broadcast()
}

// flush forgets the work that waits; a sweep will find it again.
func (c *cluster) flush() { c.prune(c.queue.clear()) }

// prune drops items that nothing is wanted of any more.
func (c *cluster) prune(items []*item) {
	for _, i := range items {
		if i.object == nil && i.status == nil && !i.queued && !i.working {
			delete(c.items, i.id)
		}
	}
}

// writable reports that writes may go out.
func (c *cluster) writable() bool {
	return c.gate.open() && c.conn != nil && !c.conn.suspect && !c.closed
}

// enqueue has a look taken at an item, if one may be taken now. If not, the
// sweep that follows when it may will find it.
func (c *cluster) enqueue(i *item, fresh bool) {
	if !c.writable() {
		return
	}
	i.fresh = i.fresh || fresh
	switch {
	case i.queued:
	case i.working:
		i.again = true
	default:
		c.queue.push(i)
		c.openBatch()
	}
}

// sweep has a look taken at everything; unless it is for a fresh start, not at
// what was refused and is to be tried later.
func (c *cluster) sweep(fresh bool) {
	now := time.Now()
	for _, i := range c.items {
		if fresh || !now.Before(i.due) {
			c.enqueue(i, fresh)
		}
	}
	c.sweepGarbage()
}

func (c *cluster) sweepGarbage() {
	if !c.writable() {
		return
	}
	for of, l := range c.conn.objects {
		if i := c.items[of]; (i == nil || i.object == nil) && c.garbage(of, l) {
			c.enqueue(c.item(of), true)
		}
	}
}

// garbage reports that an object that no part asks for is ours to collect.
func (c *cluster) garbage(of id, l live) bool {
	if of.kind.Info().Access&snapshot.Write == 0 || !l.ours || !l.here || l.going {
		return false
	}
	if !c.conn.kinds[of.kind].current() {
		return false
	}
	if c.name != "" {
		return true
	}
	// A discovered object outlives the silence of its cluster, not its registration.
	frozen, registered := c.gate.clusters[l.source]
	return !registered || !frozen
}

// look takes a look at one id because of what the watch saw.
func (c *cluster) look(of id) {
	if i := c.items[of]; i != nil {
		c.enqueue(i, false)
		return
	}
	if c.conn == nil {
		return
	}
	if l, exists := c.conn.objects[of]; exists && c.garbage(of, l) {
		c.enqueue(c.item(of), false)
	}
}

// busy reports that something handed over is neither written nor failed.
func (c *cluster) busy() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	if !c.queue.idle() || c.racing > 0 {
		return true
	}
	if !c.gate.open() || c.problem.Code != "" {
		return false
	}
	return c.conn == nil && c.next != nil || c.conn != nil && c.conn.suspect
}

// after has another look taken at an item later. Quiet looks count as work.
func (c *cluster) after(i *item, wait time.Duration, quiet bool) {
	if quiet {
		c.racing++
	}
	time.AfterFunc(wait, func() {
		c.mu.Lock()
		defer c.unlock()
		if quiet {
			c.racing--
		}
		if c.items[i.id] == i {
			c.enqueue(i, false)
		}
	})
}
