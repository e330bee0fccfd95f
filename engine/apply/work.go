package apply

import (
	"errors"
	"time"

	"github.com/meshctl/meshctl/engine/kube"
	"github.com/meshctl/meshctl/engine/mirror"
	"github.com/meshctl/meshctl/engine/snapshot"
)

// This file gathers the facts about an item, lets decide decide, sends the request, and enters the answer, until there is nothing to
// send.

// work processes items of the queue until the sink stops.
func (c *cluster) work() {
	for {
		c.mu.Lock()
		i := c.queue.next(func() bool { return c.remote.closed || c.ctx.Err() != nil })
		if i == nil {
			c.mu.Unlock()
			return
		}
		i.asking, i.asked = i.asking || i.asked, false
		c.mu.Unlock()
		(&pass{cluster: c, item: i}).run()
	}
}

// pass is one turn of an item that a worker has taken.
type pass struct {
	cluster *cluster
	item    *item
	// after is the request that was answered last.
	after verb
	// reverted is what somebody else did to the object, which the present request puts back; nil if nothing is known of that.
	reverted *snapshot.Drift
}

// run sends requests until the item is as wanted, or has to wait.
func (p *pass) run() {
	c, i := p.cluster, p.item
	p.prepare()
	for {
		c.mu.Lock()
		f := p.gather()
		d := decide(f)
		p.enter(f, &d)
		if d.step.verb == none {
			p.finish()
			c.unlock()
			return
		}
		i.send(d.step)
		conn, writer, repair := c.remote.now.Conn, c.remote.writer, c.repair(f, &d)
		c.unlock()
		p.reverted = repair.explain(c.ctx, writer, c.shared)
		began := time.Now()
		r := perform(c.ctx, writer, c.shared, i.id, c.name, d.step)
		r.took = time.Since(began)
		if r.class == fine && (d.step.verb == writeObject || d.step.verb == writeStatus) {
			conn.Written(c, i.id, r.live)
		}
		c.mu.Lock()
		p.record(conn, d.step, r)
		c.unlock()
		p.after = d.step.verb
	}
}

// prepare computes the digests of what is wanted without the lock.
func (p *pass) prepare() {
	c, i := p.cluster, p.item
	c.mu.Lock()
	content, wanted, rests := i.content, i.status, i.history.rested().After(time.Now())
	c.mu.Unlock()
	if content != nil && !rests {
		_, _ = content.get() // decide handles the error
	}
	if wanted != nil {
		_, _ = wanted.get()
	}
}

// gather collects what a decision about an item depends on.
func (p *pass) gather() *facts {
	c, i := p.cluster, p.item
	f := &facts{
		now: time.Now(), id: i.id, view: around{c.ledger, p},
		place:   place{cluster: c.name, plane: c.Namespace, writable: c.remote.writable(), limits: limits{c.Pace.Patience, c.withdrawals.limits.Grace, c.Settle}},
		content: i.content, status: i.status, current: i.current, history: &i.history, phase: i.phase, asked: i.asking, after: p.after, unsure: i.sending != nil,
	}
	if !f.place.writable {
		return f
	}
	f.place.kind = c.remote.now.Conn.State(i.id.Kind)
	if l, exists := c.remote.now.Conn.Find(i.id); exists {
		f.live, f.stray, f.garbage = &l, c.remote.stray(l), c.remote.garbage(i.id, l)
	}
	switch {
	case i.object != nil:
	case f.live != nil && f.garbage:
		f.withdrawal = c.withdrawals.note(i.id, c.withdrawals.edits.All)
	default:
		delete(c.withdrawals.pending, i.id)
	}
	return f
}

// around is what surrounds an item: what the ledger knows, and the cluster.
type around struct {
	*ledger
	*pass
}

func (p *pass) widened() *content { return p.cluster.tracker.widened(p.item) }
func (p *pass) outage() string    { return p.cluster.outages.of(p.item) }
func (p *pass) held() bool        { return p.cluster.reports.has(ofDeletions) }

// enter takes over a decision about an item.
func (p *pass) enter(f *facts, d *decision) {
	c, i := p.cluster, p.item
	i.history.since = d.since
	c.tracker.obstruct(i, d.obstructed)
	i.place.statusOnly = i.place.statusOnly || d.statusOnly
	if d.found != nil {
		c.tracker.observe(i, d.found)
	}
	c.phases.move(i.phase, d.phase)
	i.phase, i.again = d.phase, d.again
	if !d.again.IsZero() {
		c.timers.set(i, d.again)
	}
	switch {
	case d.reason.Code != "":
		if panicked := (*kube.PanicError)(nil); errors.As(d.err, &panicked) {
			c.Log.Error("object cannot be written. This is a bug in meshctl, please report it",
				"object", i.id.Ref(c.name).String(), "error", d.err, "stack", string(panicked.Stack))
		}
		c.reports.fail(i, d.reason)
	case d.phase == AsWanted:
		i.history.conflicts, i.history.since, i.history.outdated = 0, time.Time{}, nil
		if d.again.IsZero() {
			i.history.refusal = nil
		}
		c.reports.clear(i.id)
		if f.after == none && i.asking && i.object != nil {
			c.reports.changes.unchanged()
		}
	}
	switch d.phase {
	case AsWanted, Failing:
		i.asking = false
	case Outage:
		c.outages.park(i)
	}
}

// record enters the answer to a request.
func (p *pass) record(conn *mirror.Connection, s step, r response) {
	c, i := p.cluster, p.item
	if s.verb == readObject {
		c.tracker.observeRead(i, r)
		return
	}
	c.metrics.observe(c.name, s, r)
	switch r.class {
	case fine:
		p.answered(conn)
		p.wrote(s, r)
	case conflict:
		c.tracker.requestAnswered(i)
		i.history.conflicted(s.version, time.Now())
	case unreachable:
		if c.ctx.Err() == nil {
			p.unanswered(conn, s, r.err)
		}
	case slow:
		p.refused(s, slowMessage, true)
		c.probe(conn, r.err)
	case refused:
		c.tracker.requestAnswered(i)
		if !ofServer(r.err) {
			p.answered(conn)
		}
		p.refused(s, kube.Message(r.err), ofServer(r.err))
	}
}

// refused enters a request that failed, to be tried again later.
func (p *pass) refused(s step, message string, ofServer bool) {
	c, i := p.cluster, p.item
	c.reports.fail(i, snapshot.Reason{Code: snapshot.WriteFailed, What: failedTo(s.verb, message)})
	i.history.failing().tried = true
	if ofServer {
		if b := c.outages.failed(i, message); b != nil {
			c.timers.set(b, time.Now().Add(b.pause()))
			c.Log.Warn("the API server takes no objects of a kind in a namespace; trying one at a time",
				"cluster", c.name, "kind", i.id.Kind.String(), "namespace", i.id.Namespace, "error", message)
		}
	}
	if c.outages.of(i) == "" {
		i.history.refused(s.verb, len(c.reports.objects), time.Now())
	}
}

// answered enters a write that the server took, or refused because of the object.
func (p *pass) answered(conn *mirror.Connection) {
	c, i := p.cluster, p.item
	if conn == c.remote.now.Conn && c.remote.faults.inRow > 0 && !c.remote.now.Suspended {
		c.remote.faults.inRow = 0
		c.clearProblem()
	}
	waited, closed := c.outages.end(areaOf(i))
	c.requeue(waited)
	if closed {
		c.Log.Info("the API server takes objects of the kind again", "cluster", c.name, "kind", i.id.Kind.String(), "namespace", i.id.Namespace)
	}
}

// unanswered enters a write that got no answer about the object: the server is down, or it
// answers probes and rejects writes. An object that fails again while others do not is
// tried again like one that is refused, and is no reason to slow down others.
func (p *pass) unanswered(conn *mirror.Connection, s step, err error) {
	c, i := p.cluster, p.item
	now := time.Now()
	i.history.refused(s.verb, len(c.reports.objects), now)
	tries := i.history.refusal.tries
	switch {
	case conn != c.remote.now.Conn:
		return
	case tries > 1 && !c.reports.has(ofConnection):
		c.reports.fail(i, snapshot.Reason{Code: snapshot.WriteFailed, What: failedTo(s.verb, kube.Message(err))})
	case tries == 1 && !c.remote.now.Suspended:
		c.remote.faults.inRow++
	}
	c.remote.faults.last = now
	c.probe(conn, err)
}

// wrote enters a request that was done.
func (p *pass) wrote(s step, r response) {
	c, i := p.cluster, p.item
	now := time.Now()
	h := &i.history
	if !i.asking && !h.wrote.IsZero() {
		h.repaired(now)
	}
	h.wrote, h.conflicts, h.outdated = now, 0, nil
	h.effort = h.effort.spend(r.took, now)
	if h.refusal != nil && s.verb == h.refusal.verb {
		h.refusal = nil
	}
	same := r.live.Version == s.version
	switch {
	case s.verb == writeObject:
		c.tracker.wrote(i, s.content, !same, r.took)
		h.settled = pair{s.wanted, r.live.Spec}
		switch {
		case r.created:
			c.reports.changes.did(Created, i, p.reverted)
		case same:
			if i.asking {
				c.reports.changes.unchanged()
			}
		default:
			c.reports.changes.did(Configured, i, p.reverted)
		}
	case s.verb == writeStatus:
		if i.status != nil {
			i.status.settled = pair{s.wanted, r.live.Status}
		}
		if !same {
			c.reports.changes.did(StatusWritten, i, nil)
		}
	case s.verb == deleteObject:
		h.outdated = &outdated{version: s.version, until: now.Add(conflictMost), removed: true}
		c.tracker.wrote(i, nil, true, r.took)
		c.reports.clear(i.id)
		if !r.gone {
			c.reports.changes.did(Deleted, i, nil)
		}
	}
	if h.rewrites == disputed {
		c.Log.Warn("another client keeps changing an object; repairing it less often", "object", i.id.Ref(c.name).String())
	}
}

// finish gives an item back to the queue.
func (p *pass) finish() {
	c, i := p.cluster, p.item
	delete(c.tracker.unread, i.id) // it was read, if that was possible
	if c.queue.done(i) {
		c.enqueue(i, false)
	}
	c.prune([]*item{i})
}
