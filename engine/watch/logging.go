package watch

import (
	"slices"

	"github.com/meshctl/meshctl/engine/snapshot"
)

// SetLogging sets the Workloads whose proxies send their access log, which are part of the Input; nil if that is not known.
func (s *Source) SetLogging(now *snapshot.Logging) {
	s.mu.Lock()
	changed := (now == nil) != (s.logging == nil) || now != nil && !slices.Equal(now.Workloads, s.logging.Workloads)
	if changed {
		s.logging = now
	}
	s.mu.Unlock()
	if changed {
		s.notify()
	}
}
