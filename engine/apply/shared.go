package apply

import (
	"context"
	"log/slog"
	"sync"
	"sync/atomic"

	"k8s.io/apimachinery/pkg/types"
)

// shared is what all clusters of a sink use.
type shared struct {
	Options
	metrics *metrics
	ledger  *ledger
	// failuresChanged holds a value while nobody has read the failures since they
	// changed.
	failuresChanged chan struct{}

	// uids are the identities of the registered clusters.
	uids atomic.Pointer[map[string]types.UID]

	// publishing counts calls of publish that have not returned.
	publishing atomic.Int32

	mu sync.Mutex
	// progress is closed when something happened that Settled may wait for; nil
	// while nobody waits.
	progress chan struct{}
}

// notifyFailures signals FailuresChanged.
func (s *shared) notifyFailures() {
	select {
	case s.failuresChanged <- struct{}{}:
	default:
	}
}

// notifyProgress wakes those who wait in Settled.
func (s *shared) notifyProgress() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.progress != nil {
		close(s.progress)
		s.progress = nil
	}
}

// nextProgress returns a channel that the next notifyProgress closes.
func (s *shared) nextProgress() <-chan struct{} {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.progress == nil {
		s.progress = make(chan struct{})
	}
	return s.progress
}

// publish logs a ChangeSet and passes it to OnChange.
func (s *shared) publish(set ChangeSet) {
	level := slog.LevelInfo
	if !set.Changed() {
		level = slog.LevelDebug
	}
	s.Log.Log(context.Background(), level, "applied", "cluster", set.Cluster, "took", set.Took, "changes", set)
	s.OnChange(set)
}
