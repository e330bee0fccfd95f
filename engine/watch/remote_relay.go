package watch

import (
	"github.com/meshctl/meshctl/engine/relay"
	"github.com/meshctl/meshctl/engine/snapshot"
)

// SetRelay says how the agent of the cluster is connected, for statuses. The same pointer says nothing new.
func (r *Remote) SetRelay(told *snapshot.Relay) {
	r.mu.Lock()
	same := r.next.Relay == told
	if !same {
		r.next.Relay, r.dirty = told, true
	}
	r.mu.Unlock()
	if !same {
		r.notify()
	}
}

// Mismatches is how often what was here of a kind differed from what the agent said that it is.
func (r *Remote) Mismatches() uint64 {
	r.turn.Lock()
	defer r.turn.Unlock()
	return uint64(r.receiver.Mismatches())
}

// Reported is how many objects of the cluster are here as its agent reported them, and whether these are all.
func (r *Remote) Reported() (objects int, complete bool) {
	r.turn.Lock()
	objects = r.receiver.Objects()
	r.turn.Unlock()
	r.mu.Lock()
	defer r.mu.Unlock()
	return objects, r.connected && r.next.Sync == snapshot.Synced
}

// Sums are what is here of each kind, as its agent reported it.
func (r *Remote) Sums() relay.Sums {
	r.turn.Lock()
	defer r.turn.Unlock()
	return r.receiver.Sums()
}

// Hashes are what is here of one kind.
func (r *Remote) Hashes(kind string) relay.Hashes {
	r.turn.Lock()
	defer r.turn.Unlock()
	return r.receiver.Hashes(kind)
}
