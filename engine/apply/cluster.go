package apply

import (
	"context"
	"maps"
	"sync"
	"sync/atomic"
	"time"

	"k8s.io/client-go/rest"

	"github.com/meshctl/meshctl/engine/kube"
	"github.com/meshctl/meshctl/engine/snapshot"
)

// cluster is one cluster of the sink: what is wanted there, what exists there, and
// the queue of differences. It does not wait for other clusters, except that the
// statuses in the management cluster do (Sink.putStatusesLast).
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
	// conn is the connection in use; next is one that replaces it as soon as it is
	// ready.
	conn, next *connection
	queue      queue
	// awaiting counts items that pause and for which Settled waits; blocked,
	// those that wait for proxies, blockedRoutes, the routes among them.
	awaiting, blocked, blockedRoutes int
	// able is true while the cluster is writable, and silent while it is not and that
	// will not change in a moment; for others that hold no lock.
	able, silent atomic.Bool
	// unread are the objects of earlier processes to be read; counted is true while the
	// ledger counts the cluster as one that is reading.
	unread  map[id]bool
	counted bool

	batch    *batch
	failures map[id]snapshot.Failure
	outages  map[area]*outage
	// problem is the failure of the cluster as a whole; zero if none.
	problem snapshot.Failure
	// met is what is said about other management planes; zero if there are none.
	met snapshot.Failure
	// unmet is the failure of what is not written until the cluster answers; zero if
	// everything is.
	unmet  snapshot.Failure
	gauges gauges
	withdrawals
}

// gate says whether an Output allows writes to a cluster.
type gate struct {
	// armed: there is an Output. listed: it lists the cluster. frozen: the cluster is
	// frozen in it.
	armed, listed, frozen bool
	// clusters says for each registered cluster whether it is frozen; set for the
	// management cluster, where the discovered objects of frozen clusters are kept.
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
		withdrawals: withdrawals{pending: map[id]*withdrawal{}},
		outages:     map[area]*outage{}, unread: map[id]bool{},
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
	var budget *kube.Budget
	if c.name != "" { // the management cluster is trusted
		budget = kube.NewBudget(kube.Bounds{})
	}
	client, err := dial(cfg, c.kinds, warnings{c.Log, c.name}, budget)
	c.mu.Lock()
	defer c.unlock()
	c.drop(c.next)
	c.next = nil
	if err != nil {
		c.setProblem(err.Error())
		return
	}
	ctx, cancel := context.WithCancel(c.ctx)
	conn := &connection{Client: client, mirror: newMirror(c.kinds, client.Hold), ctx: ctx, cancel: cancel, hurry: make(chan struct{}, 1)}
	c.next = conn
	if c.conn == nil && c.problem.Code != "" {
		c.problem = snapshot.Failure{}
		c.notifyFailures()
	}
	time.AfterFunc(listPatience, func() { c.overdue(conn) })
	for _, kind := range c.kinds {
		conn.group.Go(func() {
			conn.watch(ctx, kind, &store{connection: conn, kind: kind, cluster: c.name, plane: c.plane(), to: c})
		})
	}
}

// disconnect closes the connections and drops their mirrors.
func (c *cluster) disconnect() {
	c.mu.Lock()
	defer c.unlock()
	c.drop(c.conn)
	c.drop(c.next)
	c.conn, c.next = nil, nil
	clear(c.unread)
	c.forgive()
	c.flush()
	c.problem, c.unmet, c.met = snapshot.Failure{}, snapshot.Failure{}, snapshot.Failure{}
	clear(c.failures)
	c.notifyFailures()
}

// drop closes a connection, if there is one, without waiting.
func (c *cluster) drop(conn *connection) {
	if conn != nil {
		conn.cancel()
		c.group.Go(conn.close)
	}
}

// abandoned reports that the cluster was removed and nothing is wanted there.
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
	clear(c.unread)
	c.wake.Broadcast()
	c.forgive()
	c.flush()
}

// armed reports whether the cluster has an Output.
func (c *cluster) armed() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.gate.armed
}

// unlock ends a critical section, publishes a finished batch, and wakes waiters.
func (c *cluster) unlock() {
	c.able.Store(c.writable())
	c.silent.Store(c.gate.armed && !c.writable() && !c.connecting())
	c.countReading()
	done := c.closeBatch()
	c.measure()
	if done != nil {
		c.publishing.Add(1)
	}
	c.mu.Unlock()
	if done != nil {
		c.publish(*done)
		c.publishing.Add(-1)
	}
	c.notifyProgress()
}

// update applies the changes of a new Output.
func (c *cluster) update(d *delta, made map[*snapshot.Object]*content, g gate) {
	c.mu.Lock()
	defer c.unlock()
	was := c.gate
	c.gate = g
	touched := c.want(d, made)
	c.reconsider()
	c.weigh()
	switch {
	case !g.open():
		c.flush()
		if !g.listed {
			clear(c.failures)
			c.forgetWithdrawals()
			c.notifyFailures()
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
	c.awaitCluster()
}

// want updates the items and returns those that changed. Drops come before puts,
// because an object may move from one part to another.
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
		wanted := &wantedStatus{Status: s}
		if i.status != nil {
			wanted.settled = i.status.settled
		}
		i.change(time.Now())
		i.status = wanted
		i.statusOnly = i.statusOnly || !i.queued
		touched = append(touched, i)
	}
	for _, o := range d.drop {
		if i := c.items[idOf(o.Ref)]; i != nil {
			i.lastParents = i.parents()
			i.object = nil
			touched = append(touched, i)
		}
	}
	for _, o := range d.put {
		i := c.item(idOf(o.Ref))
		c.put(i, o, made[o])
		delete(c.pending, i.id)
		touched = append(touched, i)
	}
	for _, o := range d.drop {
		if i := c.items[idOf(o.Ref)]; i != nil && i.object == nil {
			c.clearFailure(i.id)
			c.unwant(i)
			c.withdraw(i.id, c.edits.explain(i.lastParents))
		}
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

// flush clears the queue; a sweep will find the work again.
func (c *cluster) flush() { c.prune(c.queue.clear()) }

// prune removes items of which nothing is wanted.
func (c *cluster) prune(items []*item) {
	for _, i := range items {
		if i.object == nil && i.status == nil && !i.queued && !i.working && !i.blocked && !i.resting && !i.sleeping() && c.pending[i.id] == nil {
			c.found(i, nil)
			delete(c.items, i.id)
		}
	}
}

// writable reports whether writes are allowed.
func (c *cluster) writable() bool {
	return c.gate.open() && c.conn != nil && !c.conn.suspect && !c.closed
}

// connecting reports whether the cluster is about to be writable, as far as is known.
func (c *cluster) connecting() bool {
	return c.gate.open() && c.problem.Code == "" && (c.conn != nil || c.next != nil)
}

// enqueue queues an item if writes are allowed. If not, the sweep will find it when
// they are.
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

// sweep queues everything.
func (c *cluster) sweep(fresh bool) {
	clear(c.unread)
	for of, i := range c.items {
		if c.writable() {
			c.learn(of)
		}
		c.enqueue(i, fresh)
	}
	c.sweepGarbage()
}

func (c *cluster) sweepGarbage() {
	if !c.writable() {
		return
	}
	for of, l := range c.conn.objects {
		if i := c.items[of]; (i == nil || i.object == nil) && c.garbage(of, l) {
			c.learn(of)
			c.collect(of, true)
		}
	}
	c.weigh()
}

// garbage reports whether an object that no part wants is to be deleted.
func (c *cluster) garbage(of id, l live) bool {
	if of.kind.Info().Access&snapshot.Write == 0 || !l.ours || !l.here && !c.stray(l) || l.going {
		return false
	}
	if !c.conn.kinds[of.kind].current() {
		return false
	}
	if c.name != "" {
		return true
	}
	// A discovered object is kept while its cluster is frozen, and deleted when the
	// cluster is no longer registered.
	frozen, registered := c.gate.clusters[l.source]
	return !registered || !frozen
}

// check queues an object because of a watch event, if it is wanted or garbage.
func (c *cluster) check(of id) {
	if i := c.items[of]; i != nil {
		i.refusal.hurry(time.Now()) // it may be taken now
		c.enqueue(i, false)
		return
	}
	if c.conn == nil {
		return
	}
	if l, exists := c.conn.objects[of]; exists && c.garbage(of, l) {
		c.collect(of, false)
		c.weigh()
	}
}

// busy reports whether something wanted is neither written nor failed.
func (c *cluster) busy() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	if !c.queue.idle() || c.awaiting > 0 || c.blocked > 0 {
		return true
	}
	if !c.gate.open() || c.problem.Code != "" {
		return false
	}
	return c.conn == nil && c.next != nil || c.conn != nil && c.conn.suspect
}
