package apply

import (
	"fmt"
	"log/slog"
	"time"

	"github.com/meshctl/meshctl/engine/snapshot"
)

// Action is what was done to an object.
type Action string

const (
	// Created: the object did not exist.
	Created Action = "created"
	// Configured: it existed and differed.
	Configured Action = "configured"
	// StatusWritten: its status differed.
	StatusWritten Action = "status"
	// Deleted: meshctl had created it and it is no longer wanted.
	Deleted Action = "deleted"
	// Failed: an API server rejected it, it is not meshctl's, or it waits for a
	// cluster that does not answer.
	Failed Action = "failed"
)

// Change is one write that was done, or failed, in one cluster.
type Change struct {
	Time   time.Time
	Action Action
	Ref    snapshot.Ref
	// Parents are the policies from which the object follows, or followed.
	Parents []snapshot.Ref
	// Message is the error of a failure.
	Message string
}

// ChangeSet is what was done in one cluster from when its queue had work until it
// was empty.
type ChangeSet struct {
	// Cluster is the registration name; empty on the management plane.
	Cluster string
	// Created, Configured, Deleted, Statuses and Failed count writes;
	// Unchanged counts the objects that were checked and were as wanted.
	Created, Configured, Unchanged, Deleted, Statuses, Failed int
	// Changes are the first MaxChanges of them, in the order in which they were done.
	Changes []Change
	// Took is the time from the first to the last.
	Took time.Duration
}

// MaxChanges bounds ChangeSet.Changes.
const MaxChanges = 100

// Changed reports whether anything was written or newly failed.
func (s ChangeSet) Changed() bool {
	return s.Created+s.Configured+s.Deleted+s.Statuses+s.Failed > 0
}

// String is for people: "cluster-1: 3 created, 1 configured, 20 unchanged".
func (s ChangeSet) String() string {
	out := s.Cluster
	if out == "" {
		out = "management plane"
	}
	sep := ": "
	for _, part := range []struct {
		n    int
		what string
	}{
		{s.Created, "created"}, {s.Configured, "configured"}, {s.Deleted, "deleted"},
		{s.Statuses, "statuses"}, {s.Failed, "failed"}, {s.Unchanged, "unchanged"},
	} {
		if part.n > 0 {
			out += fmt.Sprintf("%s%d %s", sep, part.n, part.what)
			sep = ", "
		}
	}
	return out
}

// LogValue implements slog.LogValuer.
func (s ChangeSet) LogValue() slog.Value {
	return slog.GroupValue(
		slog.Int("created", s.Created), slog.Int("configured", s.Configured), slog.Int("deleted", s.Deleted),
		slog.Int("statuses", s.Statuses), slog.Int("failed", s.Failed), slog.Int("unchanged", s.Unchanged))
}

// batch is an unfinished ChangeSet.
type batch struct {
	ChangeSet
	began  time.Time
	logged int
}

// maxLogged bounds the failures that one batch writes to the log.
const maxLogged = 10

func (c *cluster) openBatch() {
	if c.batch == nil {
		c.batch = &batch{ChangeSet: ChangeSet{Cluster: c.name}, began: time.Now()}
	}
	c.wake.Signal()
}

// closeBatch returns the ChangeSet of a finished batch in which something was done.
func (c *cluster) closeBatch() *ChangeSet {
	if c.batch == nil || !c.queue.idle() {
		return nil
	}
	done := c.batch
	c.batch = nil
	done.Took = time.Since(done.began)
	if !done.Changed() && done.Unchanged == 0 {
		return nil
	}
	return &done.ChangeSet
}

// count records a write of an item.
func (c *cluster) count(i *item, a Action) {
	c.recordChange(Change{Time: time.Now(), Action: a, Ref: i.id.Ref(c.name), Parents: i.causes()})
}

func (c *cluster) countFailure(f snapshot.Failure) {
	c.recordChange(Change{Time: time.Now(), Action: Failed, Ref: f.Ref, Parents: f.Parents, Message: f.Reason.String()})
	if c.batch.logged++; c.batch.logged <= maxLogged {
		c.Log.Warn("object cannot be written", "object", f.Ref.String(), "code", string(f.Code), "error", f.Reason.String())
	}
}

func (c *cluster) countUnchanged() {
	c.openBatch()
	c.batch.Unchanged++
}

func (c *cluster) recordChange(change Change) {
	c.openBatch()
	b := c.batch
	switch change.Action {
	case Created:
		b.Created++
	case Configured:
		b.Configured++
	case StatusWritten:
		b.Statuses++
	case Deleted:
		b.Deleted++
	case Failed:
		b.Failed++
	}
	if len(b.Changes) < MaxChanges {
		b.Changes = append(b.Changes, change)
	}
	c.metrics.changes.WithLabelValues(c.name, change.Ref.Kind.String(), string(change.Action)).Inc()
}
