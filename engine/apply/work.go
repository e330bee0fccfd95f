package apply

import (
	"errors"
	"maps"
	"slices"
	"time"

	"github.com/meshctl/meshctl/engine/kube"
	"github.com/meshctl/meshctl/engine/mirror"
	"github.com/meshctl/meshctl/engine/snapshot"
)

// verb is what to do about an item.
type verb uint8

const (
	// leave: do nothing now. satisfied: everything is as wanted.
	leave verb = iota
	satisfied
	// object, status, remove are writes.
	object
	status
	remove
	// fail: it cannot be written until something changes in the cluster.
	fail
)

// step is one decision, with what is needed to perform it.
type step struct {
	verb verb
	// version is of the object that was looked at; 0 if there is none.
	version uint64
	wanted  mirror.Digest
	content *content
	value   any
	code    snapshot.Code
	message string
	// err is why an object cannot be written as JSON.
	err error
}

// work processes items of the queue until the sink stops.
func (c *cluster) work() {
	for {
		i := c.take()
		if i == nil {
			return
		}
		c.process(i)
	}
}

func (c *cluster) take() *item {
	c.mu.Lock()
	defer c.mu.Unlock()
	for !c.closed && c.ctx.Err() == nil {
		if i := c.queue.pop(); i != nil {
			i.counts, i.fresh = i.fresh, false
			return i
		}
		c.wake.Wait()
	}
	return nil
}

// process performs steps until an item is as wanted: its object, then its status.
func (c *cluster) process(i *item) {
	c.prepare(i)
	ok, last := true, leave
	for ok {
		c.mu.Lock()
		s, conn, writer := c.decide(i, last), c.now.Conn, c.writer
		c.unlock()
		if s.verb == leave || s.verb == satisfied || s.verb == fail {
			c.finish(i, s, last == leave)
			return
		}
		last = s.verb
		began := time.Now()
		r := perform(c.ctx, writer, c.shared, i.id, c.name, s)
		r.took = time.Since(began)
		c.observe(s, r, r.took)
		c.mu.Lock()
		ok = c.record(conn, i, s, r)
		c.unlock()
	}
	c.finish(i, step{}, false)
}

// prepare computes the digests of what is wanted without the lock.
func (c *cluster) prepare(i *item) {
	c.mu.Lock()
	content, wanted, rests := i.content, i.status, i.restWait(time.Now()) > 0
	c.mu.Unlock()
	if content != nil && !rests {
		_, _ = content.get() // decide looks at the error
	}
	if wanted != nil {
		_, _ = wanted.get()
	}
	c.adopt(i)
}

// decide returns the next step for an item. last is the one before, leave at first.
func (c *cluster) decide(i *item, last verb) step {
	if !c.writable() {
		return step{}
	}
	state := c.now.Conn.State(i.id.Kind)
	l, exists := c.now.Conn.Find(i.id)
	if i.object == nil {
		if exists && c.garbage(i.id, l) {
			if c.withheld(i) || c.barred(i, remove) || c.waits(i) {
				return step{}
			}
			return step{verb: remove, version: l.Version}
		}
		delete(c.pending, i.id)
		return c.decideStatus(i, l, exists, last)
	}
	switch {
	case state.Absent:
		return step{verb: fail, code: snapshot.WriteFailed, message: absentMessage(i.id.Kind)}
	case state.Refused != "":
		return step{verb: fail, code: snapshot.WriteFailed, message: unlistedMessage(i.id.Kind, state.Refused)}
	case !state.Listed:
		return step{} // the list will bring it up again
	case exists && !l.Ours():
		return step{verb: fail, code: snapshot.ForeignObject, message: foreignMessage(i.id.Kind, l.Other, c.Namespace)}
	case exists && l.Source != "" && c.name != "" && !c.stray(l) && i.current == nil:
		// If it was found or written here before, somebody has changed its label since.
		return step{verb: fail, code: snapshot.ForeignObject, message: strayMessage(l.Source, c.name)}
	}
	target := c.target(i)
	if !target.taken.Load() && c.rests(i) {
		return step{} // it may change again
	}
	wanted, err := target.get()
	switch {
	case err != nil:
		return step{verb: fail, code: snapshot.WriteFailed, message: "cannot be written as JSON: " + err.Error(), err: err}
	case exists && l.Here && l.Owner == mirror.Marked && (l.Spec == wanted || i.settled == pair{wanted, l.Spec}):
		c.found(i, target)
		if target != i.content {
			c.block(i)
			return step{}
		}
		return c.decideStatus(i, l, exists, last)
	case c.barred(i, object), c.rests(i), last == leave && c.postpone(i):
		return step{}
	}
	if o, found := c.obstacle(i); found {
		return c.hold(i, o)
	}
	if c.waits(i) {
		return step{}
	}
	return step{verb: object, version: l.Version, wanted: wanted, content: target}
}

func (c *cluster) decideStatus(i *item, l mirror.Object, exists bool, last verb) step {
	written := i.id.Kind.Info().Access&snapshot.Write != 0
	if i.status == nil || !exists || l.Going || written && !l.Ours() {
		return step{verb: satisfied}
	}
	wanted, err := i.status.get()
	switch {
	case err != nil:
		return step{verb: fail, code: snapshot.WriteFailed, message: "status cannot be written as JSON: " + err.Error(), err: err}
	case l.Status == wanted || i.status.settled == pair{wanted, l.Status}:
		return step{verb: satisfied}
	case c.barred(i, status), last != object && c.rests(i), last == leave && c.postpone(i):
		i.statusOnly = true // it waits with other statuses then
		return step{}
	}
	return step{verb: status, version: l.Version, wanted: wanted, value: i.status.Value}
}

// postpone reports whether a repair has to wait, and queues it for later.
func (c *cluster) postpone(i *item) bool {
	wait := i.repairWait(time.Now())
	if wait <= 0 {
		return false
	}
	c.later(i, wait)
	return true
}

// record handles the response to a write; true if the next step may follow.
func (c *cluster) record(conn *mirror.Connection, i *item, s step, r response) bool {
	switch r.class {
	case fine:
		c.answered(conn, i)
		c.wrote(conn, i, s, r)
		return s.verb != remove
	case race:
		c.race(i)
	case unreachable:
		if c.ctx.Err() == nil {
			c.fault(conn, i, s, r.err)
		}
	case slow:
		c.refused(i, s, slowMessage, true)
		c.suspect(conn, r.err)
	case refused:
		if !ofServer(r.err) {
			c.answered(conn, i)
		}
		c.refused(i, s, kube.Message(r.err), ofServer(r.err))
	}
	return false
}

// refused records a write that failed, and tries it again later.
func (c *cluster) refused(i *item, s step, message string, ofServer bool) {
	c.setFailure(i, s, snapshot.WriteFailed, message)
	i.failing().tried = true
	if ofServer {
		c.failed(i, message)
	}
	if !c.park(i, s.verb) {
		c.retry(i, s.verb)
	}
}

func (c *cluster) wrote(conn *mirror.Connection, i *item, s step, r response) {
	now := time.Now()
	if !i.counts && !i.wrote.IsZero() {
		i.repaired(now)
	}
	i.wrote, i.races = now, 0
	i.effort = i.effort.spend(r.took, now)
	if i.refusal != nil && s.verb == i.refusal.verb {
		i.refusal = nil
	}
	if s.verb != remove {
		conn.Written(i.id, r.live)
	}
	same := r.live.Version == s.version
	switch {
	case s.verb == object:
		c.ledger.wrote(i, c.name, i.current, s.content, !same, r.took)
		i.current = s.content
		i.settled = pair{s.wanted, r.live.Spec}
		switch {
		case r.created:
			c.count(i, Created)
		case same:
			if i.counts {
				c.countUnchanged()
			}
		default:
			c.count(i, Configured)
		}
	case s.verb == status:
		if i.status != nil {
			i.status.settled = pair{s.wanted, r.live.Status}
		}
		if !same {
			c.count(i, StatusWritten)
		}
	case s.verb == remove:
		c.ledger.wrote(i, c.name, i.current, nil, true, r.took)
		i.current = nil
		c.clearFailure(i.id)
		if !r.gone {
			c.count(i, Deleted)
		}
	}
	if i.rewrites == disputed {
		c.Log.Warn("another client keeps changing an object; repairing it less often", "object", i.id.Ref(c.name).String())
	}
}

// disputed is the number of repairs in a row that is logged.
const disputed = 6

// setFailure records a failure, and reports it if it is new.
func (c *cluster) setFailure(i *item, s step, code snapshot.Code, message string) {
	if s.verb == remove {
		message = "cannot be deleted: " + message
	}
	i.refused.Store(true)
	known, failed := c.failures[i.id]
	if failed && known.What == message && known.Code == code {
		return
	}
	f := snapshot.Failure{Ref: i.id.Ref(c.name), Reason: snapshot.Reason{Code: code, What: message}, Parents: i.parents()}
	var panicked *kube.PanicError
	if errors.As(s.err, &panicked) {
		c.Log.Error("object cannot be written. This is a bug in meshctl, please report it",
			"object", f.Ref.String(), "error", s.err, "stack", string(panicked.Stack))
	}
	c.failures[i.id] = f
	c.countFailure(f)
	c.notifyFailures()
}

// inheritFailure keeps the failure of an item whose content has changed until the new one
// is tried, which may be later; it is that of the policies of the new one.
func (c *cluster) inheritFailure(i *item) {
	if f, failed := c.failures[i.id]; failed && !slices.Equal(f.Parents, i.parents()) {
		f.Parents = i.parents()
		c.failures[i.id] = f
		c.notifyFailures()
	}
}

// clearFailure removes a failure.
func (c *cluster) clearFailure(of mirror.ID) {
	if i := c.items[of]; i != nil {
		i.refused.Store(false)
	}
	if _, failed := c.failures[of]; failed {
		delete(c.failures, of)
		c.notifyFailures()
	}
}

// appendFailures appends the cluster's failures, in no order.
func (c *cluster) appendFailures(out []snapshot.Failure) []snapshot.Failure {
	c.mu.Lock()
	defer c.mu.Unlock()
	switch {
	case c.problem.Code != "":
		f := c.problem
		f.Parents = c.unwritten.Parents
		out = append(out, f)
	case c.unwritten.Code != "":
		out = append(out, c.unwritten)
	}
	for _, f := range []snapshot.Failure{c.brake, c.otherPlanes} {
		if f.Code != "" {
			out = append(out, f)
		}
	}
	return slices.AppendSeq(out, maps.Values(c.failures))
}

// finish returns an item to the queue.
func (c *cluster) finish(i *item, s step, first bool) {
	c.mu.Lock()
	defer c.unlock()
	delete(c.unread, i.id) // it was read, if that was possible
	switch s.verb {
	case fail:
		c.setFailure(i, s, s.code, s.message)
	case satisfied:
		i.races, i.blockedAt = 0, time.Time{}
		if i.object != nil || i.status != nil {
			i.refusal = nil
		}
		c.clearFailure(i.id)
		if first && i.counts && i.object != nil {
			c.countUnchanged()
		}
	}
	if c.queue.done(i) {
		c.wake.Broadcast()
	}
	if i.again {
		i.again = false
		c.enqueue(i, false)
	}
	c.prune([]*item{i})
}
