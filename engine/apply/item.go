package apply

import (
	"sync/atomic"
	"time"

	"github.com/meshctl/meshctl/engine/kube"
	"github.com/meshctl/meshctl/engine/mirror"
	"github.com/meshctl/meshctl/engine/snapshot"
)

// item is what is wanted for one id: an object, a status, both, or neither, which
// means that no object of ours may remain. The cluster's lock guards it.
type item struct {
	id      mirror.ID
	object  *snapshot.Object
	content *content
	settled pair
	status  *wantedStatus
	// current is the content that is written; nil if it is not known. wide is the
	// wanted content with what current provides.
	current, wide *content
	// blocked: it waits for proxies, since blockedAt.
	blocked   bool
	blockedAt time.Time
	// held: there is an obstacle to what is wanted, and proxies have what was written
	// before. refused: it has a failure. Both are written under the lock of the cluster.
	held, refused atomic.Bool
	// kept: what it provides stays because of a route, however long that takes. resting: it
	// is queued again after restTime.
	kept, resting bool
	// lastParents are the parents of an object that is no longer wanted.
	lastParents []snapshot.Ref

	// queued, working: where in the queue it is. again: check it once more after
	// the current check. fresh: the next check is because of an Output or a new
	// connection, not because of a watch event; counts: the current one is.
	queued, working, again, fresh, counts bool
	phase                                 int
	bars                                  bool
	// statusOnly: it waits because of its status; the object is as it was wanted before.
	statusOnly bool

	// refusal is what is known of failures; nil if the last write did not fail.
	refusal *refusal
	// races counts conflicts in a row; rewrites, repairs in quick succession.
	races, rewrites uint8
	// wrote is when it was written last; effort, what that took, nil if that was little.
	wrote  time.Time
	effort *effort
	// alarm queues it again after a pause; nil if it never had to pause.
	alarm *alarm
}

// pair is a wanted digest and the live one that applying it resulted in. They
// differ where the API server stores something else than was sent.
type pair struct{ wanted, live mirror.Digest }

// wantedStatus is a status to write.
type wantedStatus struct {
	*snapshot.Status
	taken   bool
	digest  mirror.Digest
	err     error
	settled pair
}

// get is the status's digest, taken at the first call.
func (s *wantedStatus) get() (mirror.Digest, error) {
	if !s.taken {
		var value any
		if value, s.err = mirror.Plain(s.Value); s.err == nil {
			s.digest = mirror.StatusDigest(value)
		}
		s.taken = true
	}
	return s.digest, s.err
}

// put sets the wanted object.
func (i *item) put(o *snapshot.Object, c *content) {
	i.object, i.content, i.wide, i.statusOnly = o, c, nil, false
	i.blockedAt = time.Time{}
	i.races, i.rewrites = 0, 0
	i.refusal.retryNow(time.Now())
}

// parents are the policies that report a failed write.
func (i *item) parents() []snapshot.Ref {
	if i.object == nil {
		return nil
	}
	return i.object.Content.Parents
}

// causes are the policies for which the object is or, if it is no longer wanted,
// was wanted.
func (i *item) causes() []snapshot.Ref {
	if i.object == nil {
		return i.lastParents
	}
	return i.object.Content.Parents
}

// After a conflict, an item is checked again at the next watch event; this is for
// when there is none.
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

// repairWait is how long a repair has to wait, so that two controllers that change
// the same object do not write it as fast as they can.
func (i *item) repairWait(now time.Time) time.Duration {
	if i.wrote.IsZero() || i.counts {
		return 0
	}
	return max(0, i.wrote.Add(kube.Backoff(repairFirst, repairMost, int(i.rewrites))).Sub(now))
}

// repaired records a write that no new Output caused.
func (i *item) repaired(now time.Time) {
	if now.Sub(i.wrote) < repairMemory+kube.Backoff(repairFirst, repairMost, int(i.rewrites)) {
		if i.rewrites < 255 {
			i.rewrites++
		}
	} else {
		i.rewrites = 1
	}
}
