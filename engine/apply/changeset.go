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
	// Waited is how long the write waited for proxies.
	Waited time.Duration
	// Reverted is what somebody else had done to the object since it was as wanted, which this write put back;
	// nil if nothing, or if Options.ExplainRepairs is not set.
	Reverted *snapshot.Drift
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

// changes collects what is done in one cluster. The cluster's lock guards it.
type changes struct {
	cluster string
	metrics *metrics
	log     *slog.Logger
	// set is the unfinished ChangeSet; nil if there is none. It began when its first object was queued.
	set    *ChangeSet
	began  time.Time
	logged int
}

// maxLogged bounds the failures that one ChangeSet writes to the log.
const maxLogged = 10

// begin begins a ChangeSet, if there is none.
func (c *changes) begin() {
	if c.set == nil {
		c.set, c.began, c.logged = &ChangeSet{Cluster: c.cluster}, time.Now(), 0
	}
}

// end returns the ChangeSet; nil if nothing was done.
func (c *changes) end() *ChangeSet {
	set := c.set
	c.set = nil
	if set == nil || !set.Changed() && set.Unchanged == 0 {
		return nil
	}
	set.Took = time.Since(c.began)
	return set
}

// did enters a write of an item, and what it put back, if anything.
func (c *changes) did(a Action, i *item, reverted *snapshot.Drift) {
	change := Change{Time: time.Now(), Action: a, Ref: i.id.Ref(c.cluster), Parents: i.causes(), Reverted: reverted}
	if since := i.history.since; !since.IsZero() && a != StatusWritten {
		change.Waited = change.Time.Sub(since)
	}
	c.enter(change)
}

// failed enters a failure.
func (c *changes) failed(f *snapshot.Failure) {
	c.enter(Change{Time: time.Now(), Action: Failed, Ref: f.Ref, Parents: f.Parents, Message: f.Reason.String()})
	if c.logged++; c.logged <= maxLogged {
		c.log.Warn("object cannot be written", "object", f.Ref.String(), "code", string(f.Code), "error", f.Reason.String())
	}
}

// unchanged enters an object that is as it is wanted.
func (c *changes) unchanged() {
	c.begin()
	c.set.Unchanged++
}

func (c *changes) enter(change Change) {
	c.begin()
	set := c.set
	switch change.Action {
	case Created:
		set.Created++
	case Configured:
		set.Configured++
	case StatusWritten:
		set.Statuses++
	case Deleted:
		set.Deleted++
	case Failed:
		set.Failed++
	}
	if len(set.Changes) < MaxChanges {
		set.Changes = append(set.Changes, change)
	}
	c.metrics.changes.WithLabelValues(c.cluster, change.Ref.Kind.String(), string(change.Action)).Inc()
}
