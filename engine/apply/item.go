package apply

import (
	"time"

	"github.com/meshctl/meshctl/engine/mirror"
	"github.com/meshctl/meshctl/engine/snapshot"
)

// item is what is wanted for one id: an object, a status, both, or neither, which
// means that no object of ours may remain. The cluster's lock guards it.
type item struct {
	party
	object  *snapshot.Object
	content *content
	status  *wantedStatus
	// current is the content that is written; nil if it is not known. wide is the
	// wanted content with what current provides.
	current, wide *content
	// sending is what a request changes the object to: it is on its way, or had no answer. No content is a deletion.
	sending *content
	// lastParents are the parents of an object that is no longer wanted.
	lastParents []snapshot.Ref
	history     history

	// phase is what the last decision came to; again, when the next one is due, zero if that depends on events.
	phase Phase
	again time.Time
	// asked: since the last decision began, an Output or a new connection has asked for one. asking: such a request is not
	// answered yet; what is written now is no repair.
	asked, asking bool
	place         queuePlace
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
func (i *item) put(o *snapshot.Object, c *content, now time.Time) {
	if i.content == nil || i.content.Content != c.Content {
		i.history.changed(now)
	}
	i.object, i.content, i.wide = o, c, nil
	i.place.statusOnly = false
	i.history.since = time.Time{}
	i.history.conflicts, i.history.rewrites, i.history.outdated = 0, 0, nil
	i.history.refusal.retryNow(now)
}

// putStatus sets the wanted status.
func (i *item) putStatus(s *snapshot.Status, now time.Time) {
	wanted := &wantedStatus{Status: s}
	if i.status != nil {
		wanted.settled = i.status.settled
	}
	i.history.changed(now)
	i.status = wanted
	i.place.statusOnly = i.place.statusOnly || !i.place.queued
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

// idle reports whether nothing is wanted, done, or to be done.
func (i *item) idle() bool {
	return i.object == nil && i.status == nil && !i.place.queued && !i.place.working && i.again.IsZero()
}
