package apply

import (
	"time"

	"github.com/meshctl/meshctl/engine/kube"
	"github.com/meshctl/meshctl/engine/snapshot"
)

// item is what the sink shall do about one id: have an object, a status, both,
// or (neither) see that nothing of ours is left. The cluster's lock guards it.
type item struct {
	id      id
	object  *snapshot.Object
	content *content
	settled pair
	status  *statusWish
	// was are the parents of an object that is wanted no more.
	was []snapshot.Ref

	// queued, working: where in the queue it is. again: look once more when
	// the present work is done. fresh: the next look is because of an Output or
	// a new connection, not because of what the watch saw; counts: the present
	// one is.
	queued, working, again, fresh, counts bool
	phase                                 int
	bars                                  bool
	// statusOnly: it waits because of its status; the object is as it was wanted before.
	statusOnly bool

	// tries counts failures in a row; races, conflicts in a row; rewrites,
	// repairs in quick succession.
	tries, races, rewrites uint8
	// wrote is when it was written last; due, when a refused one is tried again.
	wrote, due time.Time
}

// statusWish is a status to write.
type statusWish struct {
	*snapshot.Status
	taken   bool
	digest  digest
	err     error
	settled pair
}

// get is the status's digest, taken at the first call.
func (s *statusWish) get() (digest, error) {
	if !s.taken {
		var value any
		if value, s.err = plain(s.Value); s.err == nil {
			s.digest = statusDigest(value)
		}
		s.taken = true
	}
	return s.digest, s.err
}

// put makes an object wanted.
func (i *item) put(o *snapshot.Object, c *content) {
	i.object, i.content, i.statusOnly = o, c, false
	i.tries, i.races, i.rewrites = 0, 0, 0
}

// parents are who to tell when a write fails.
func (i *item) parents() []snapshot.Ref {
	if i.object == nil {
		return nil
	}
	return i.object.Content.Parents
}

// because are the policies for which it is written or, if it is wanted no more,
// was wanted.
func (i *item) because() []snapshot.Ref {
	if i.object == nil {
		return i.was
	}
	return i.object.Content.Parents
}

// Retries of what an API server refused: 0.5 s, doubled each time, at most two minutes.
const (
	retryFirst = 500 * time.Millisecond
	retryMost  = 2 * time.Minute
)

// Conflicts are looked at again at once, when the watch has told what happened;
// this is for when it does not.
const (
	raceFirst = 50 * time.Millisecond
	raceMost  = 5 * time.Second
)

// Repairs of what somebody else keeps changing are spaced the same way, but the
// first is immediate.
const (
	repairFirst  = 200 * time.Millisecond
	repairMost   = time.Minute
	repairMemory = 10 * time.Second
)

// repairWait is how long a repair has to wait so that two who disagree about an
// object do not write it as fast as they can.
func (i *item) repairWait(now time.Time) time.Duration {
	if i.wrote.IsZero() || i.counts {
		return 0
	}
	return max(0, i.wrote.Add(kube.Backoff(repairFirst, repairMost, int(i.rewrites))).Sub(now))
}

// repaired notes a write that no Output asked for.
func (i *item) repaired(now time.Time) {
	if now.Sub(i.wrote) < repairMemory+kube.Backoff(repairFirst, repairMost, int(i.rewrites)) {
		if i.rewrites < 255 {
			i.rewrites++
		}
	} else {
		i.rewrites = 1
	}
}
