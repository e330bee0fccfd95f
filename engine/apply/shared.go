package apply

import (
	"context"
	"log/slog"
	"slices"
	"sync"
	"sync/atomic"
)

// shared is what all clusters of a sink use.
type shared struct {
	Options
	metrics *metrics
	recent  *ring
	// failuresChanged holds a token while nobody has looked at the failures since they changed.
	failuresChanged chan struct{}

	// telling counts ChangeSets that are being told of.
	telling atomic.Int32

	mu sync.Mutex
	// stirred is closed when something happened that Settled may wait for; nil
	// while nobody waits.
	stirred chan struct{}
}

// announce says that failures changed.
func (s *shared) announce() {
	select {
	case s.failuresChanged <- struct{}{}:
	default:
	}
}

// stir wakes those who wait in Settled.
func (s *shared) stir() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.stirred != nil {
		close(s.stirred)
		s.stirred = nil
	}
}

// nextStir is closed at the next stir.
func (s *shared) nextStir() <-chan struct{} {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.stirred == nil {
		s.stirred = make(chan struct{})
	}
	return s.stirred
}

// publish tells of a ChangeSet.
func (s *shared) publish(set ChangeSet) {
	level := slog.LevelInfo
	if !set.Changed() {
		level = slog.LevelDebug
	}
	s.Log.Log(context.Background(), level, "applied", "cluster", set.Cluster, "took", set.Took, "changes", set)
	s.OnChange(set)
}

// MaxRecent bounds Sink.Recent.
const MaxRecent = 512

// ring keeps the latest changes.
type ring struct {
	mu      sync.Mutex
	changes []Change
	next    int
}

func (r *ring) add(c Change) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if len(r.changes) < MaxRecent {
		r.changes = append(r.changes, c)
		return
	}
	r.changes[r.next] = c
	r.next = (r.next + 1) % MaxRecent
}

// latest lists the changes, newest first.
func (r *ring) latest() []Change {
	r.mu.Lock()
	defer r.mu.Unlock()
	out := slices.Concat(r.changes[r.next:], r.changes[:r.next])
	slices.Reverse(out)
	return out
}
