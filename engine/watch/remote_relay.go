package watch

import "github.com/meshctl/meshctl/engine/snapshot"

// SetRelay says how the agent of the cluster is connected, for statuses. The same pointer says nothing new.
func (r *Remote) SetRelay(relay *snapshot.Relay) {
	r.mu.Lock()
	same := r.next.Relay == relay
	if !same {
		r.next.Relay, r.dirty = relay, true
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
	return uint64(r.receiver.Mismatches()) //nolint:gosec // it counts up
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
