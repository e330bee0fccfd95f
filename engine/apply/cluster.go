package apply

import (
	"context"
	"maps"
	"sync"
	"time"

	"github.com/meshctl/meshctl/engine/mirror"
	"github.com/meshctl/meshctl/engine/snapshot"
)

// cluster is one cluster of the sink: what is wanted there, and the queue of differences from
// what exists there. It does not wait for other clusters, except that the statuses in the
// management cluster do (Sink.putStatusesLast).
type cluster struct {
	*shared
	name string
	ctx  context.Context

	// mu guards all that follows.
	mu sync.Mutex
	// items are all ids that are wanted or being worked on; phases counts them by phase.
	items  map[mirror.ID]*item
	phases phaseCounts
	queue  queue
	timers timers

	remote      remote
	tracker     tracker
	withdrawals withdrawals
	outages     outages
	crowd       crowd
	reports     reports
	lasting     lasting
}

func newCluster(ctx context.Context, group *sync.WaitGroup, s *shared, name string) *cluster {
	kinds := snapshot.Kinds(snapshot.ManagedSide, snapshot.Write|snapshot.InClusters)
	if name == "" {
		kinds = snapshot.Kinds(snapshot.ManagementSide, snapshot.Write|snapshot.WriteStatus)
	}
	c := &cluster{
		shared: s, name: name, ctx: ctx,
		items: map[mirror.ID]*item{}, timers: newTimers(),
		remote: remote{shared: s, cluster: name}, tracker: newTracker(s, name), reports: newReports(s, name),
		withdrawals: withdrawals{pending: map[mirror.ID]*withdrawal{}}, outages: outages{},
	}
	c.queue = newQueue(kinds, &c.mu)
	context.AfterFunc(ctx, func() {
		c.mu.Lock()
		defer c.mu.Unlock()
		c.queue.changed.Broadcast()
	})
	context.AfterFunc(ctx, c.timers.queue.ShutDown)
	for range s.Workers {
		group.Go(c.work)
	}
	group.Go(func() { c.timers.run(c) })
	return c
}

// attach writes through a link from now on.
func (c *cluster) attach(link *mirror.Link) {
	c.detach()
	c.mu.Lock()
	c.remote.link = link
	c.mu.Unlock()
	link.Listen(c)
}

// detach writes nothing any more.
func (c *cluster) detach() {
	c.mu.Lock()
	link := c.remote.link
	c.remote.link, c.remote.now, c.remote.writer = nil, mirror.LinkState{}, nil
	c.unlock()
	if link != nil {
		link.Leave(c)
	}
}

// disconnect is detach for a cluster that is gone: nothing is said of it any more.
func (c *cluster) disconnect() {
	c.detach()
	c.mu.Lock()
	defer c.unlock()
	clear(c.tracker.unread)
	c.resetRefusals()
	c.flush()
	c.lasting = lasting{}
	c.reports.clearAll(ofConnection, ofUnwritten, ofPlanes, ofWaiting)
}

// abandoned reports that the cluster was removed and nothing is wanted there.
func (c *cluster) abandoned() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.remote.link == nil && len(c.items) == 0
}

// stop ends the workers.
func (c *cluster) stop() {
	c.mu.Lock()
	defer c.unlock()
	c.remote.closed = true
	c.timers.queue.ShutDown()
	clear(c.tracker.unread)
	c.queue.changed.Broadcast()
	c.resetRefusals()
	c.flush()
}

// due reports whether the next Output is to be reconciled even if it is the same: the cluster has none, or an object stays that is
// no longer wanted, which the edits may end.
func (c *cluster) due() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return !c.remote.gate.armed || len(c.withdrawals.pending) > 0
}

// unlock ends a critical section, publishes a finished batch, and wakes waiters.
func (c *cluster) unlock() {
	c.tracker.reached(c.accessible())
	c.tracker.settle(c.queue.idle() && c.remote.writable() && !c.phases.soon())
	var done *ChangeSet
	if c.queue.idle() {
		done = c.reports.changes.end()
	}
	c.reports.measure(c.queue.queued+c.queue.working, c.remote.writable(), len(c.outages))
	c.lasting.watch(c)
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

// accessible is whether the cluster can be written to, for routes of others.
func (c *cluster) accessible() access {
	now, gate, failed := &c.remote.now, c.remote.gate, c.reports.has(ofConnection)
	able := c.remote.writable()
	// It is about to be, as far as is known.
	connecting := gate.open() && !failed && (now.Conn != nil || now.Connecting)
	// It may have routes of an earlier process that were not read yet.
	reading := c.name != "" && !c.remote.closed && (!gate.armed || gate.open()) && !failed && !now.Suspended &&
		(len(c.tracker.unread) > 0 || now.Connecting)
	return access{able: able, silent: gate.armed && !able && !connecting, reading: reading}
}

// update applies the changes of a new Output.
func (c *cluster) update(d *delta, made map[*snapshot.Object]*content, g gate) {
	c.mu.Lock()
	defer c.unlock()
	was := c.remote.gate
	c.remote.gate = g
	touched := c.want(d, made)
	for _, i := range c.withdrawals.explain(c.items) {
		c.enqueue(i, true)
	}
	c.checkDeletionLimit()
	switch {
	case !g.open():
		c.flush()
		if !g.listed {
			clear(c.withdrawals.pending)
			for _, i := range c.items {
				c.prune([]*item{i})
			}
			c.reports.clearAll(ofDeletions)
		}
	case !was.open():
		c.resync(true)
	default:
		if !maps.Equal(was.clusters, g.clusters) {
			c.collectGarbage()
		}
		for _, i := range touched {
			c.enqueue(i, true)
		}
	}
	if !c.remote.writable() {
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
	now := time.Now()
	var touched []*item
	for _, s := range d.dropStatus {
		if i := c.items[mirror.IDOf(s.Ref)]; i != nil {
			i.status, i.place.statusOnly = nil, false
			touched = append(touched, i)
		}
	}
	for _, s := range d.putStatus {
		i := c.item(mirror.IDOf(s.Ref))
		i.putStatus(s, now)
		touched = append(touched, i)
	}
	for _, o := range d.drop {
		if i := c.items[mirror.IDOf(o.Ref)]; i != nil {
			i.lastParents = i.parents()
			i.object = nil
			touched = append(touched, i)
		}
	}
	for _, o := range d.put {
		i := c.item(mirror.IDOf(o.Ref))
		c.tracker.want(i, o, made[o])
		c.reports.inherit(i)
		delete(c.withdrawals.pending, i.id)
		touched = append(touched, i)
	}
	for _, o := range d.drop {
		if i := c.items[mirror.IDOf(o.Ref)]; i != nil && i.object == nil {
			c.reports.clear(i.id)
			c.tracker.unwant(i)
			c.withdrawals.note(i.id, c.withdrawals.edits.covers(i.lastParents))
		}
	}
	return touched
}

// announce enters what an Output will provide.
func (c *cluster) announce(d *delta) {
	if c.name == "" {
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, o := range d.put {
		if len(o.Content.Relations.Provides) > 0 {
			c.tracker.announce(c.item(mirror.IDOf(o.Ref)), o.Content)
		}
	}
}

func (c *cluster) item(of mirror.ID) *item {
	i := c.items[of]
	if i == nil {
		i = &item{party: party{id: of, cluster: &c.tracker.reach}}
		c.items[of] = i
		c.phases[i.phase]++
	}
	return i
}

// holdStatuses adds a reason to keep statuses in the queue (1), or takes one
// away (-1).
func (c *cluster) holdStatuses(by int) {
	c.mu.Lock()
	defer c.unlock()
	c.queue.hold(by)
}

// flush clears the queue; a resync finds the work again.
func (c *cluster) flush() { c.prune(c.queue.clear()) }

// prune removes items of which nothing is wanted.
func (c *cluster) prune(items []*item) {
	for _, i := range items {
		if i.idle() && c.withdrawals.pending[i.id] == nil && c.items[i.id] == i {
			c.tracker.observe(i, nil)
			delete(c.items, i.id)
			c.phases[i.phase]--
		}
	}
}

// enqueue queues an item if writes are allowed. If not, a resync finds it when
// they are. Asked: see item.
func (c *cluster) enqueue(i *item, asked bool) {
	if !c.remote.writable() {
		return
	}
	i.asked = i.asked || asked
	if c.queue.push(i) {
		c.reports.changes.begin()
	}
}

// resync queues everything.
func (c *cluster) resync(asked bool) {
	clear(c.tracker.unread)
	for of, i := range c.items {
		if l, exists := c.remote.find(of); exists && c.remote.writable() {
			c.tracker.noteUnread(i, of, l)
		}
		c.enqueue(i, asked)
	}
	c.collectGarbage()
}

func (c *cluster) collectGarbage() {
	if !c.remote.writable() {
		return
	}
	for of, l := range c.remote.now.Conn.All() {
		if i := c.items[of]; (i == nil || i.object == nil) && c.remote.garbage(of, l) {
			c.tracker.noteUnread(i, of, l)
			c.enqueueDeletion(of, true)
		}
	}
	c.checkDeletionLimit()
}

// enqueueObserved queues an object because of a watch event, if it is wanted or garbage.
func (c *cluster) enqueueObserved(of mirror.ID) {
	if i := c.items[of]; i != nil {
		i.history.refusal.retryNow(time.Now()) // it may be taken now
		c.enqueue(i, false)
		return
	}
	if l, exists := c.remote.find(of); exists && c.remote.garbage(of, l) {
		c.enqueueDeletion(of, false)
		c.checkDeletionLimit()
	}
}

// busy reports whether something wanted is neither written nor failed.
func (c *cluster) busy() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	if !c.queue.idle() || c.remote.writable() && c.phases.soon() {
		return true
	}
	if !c.remote.gate.open() || c.reports.has(ofConnection) {
		return false
	}
	return c.remote.now.Connecting || c.remote.now.Suspended
}
