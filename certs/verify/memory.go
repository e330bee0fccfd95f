package verify

import (
	"slices"
	"strings"
	"sync"
	"time"
)

// retry is after which time a workload that could not be seen is connected to again.
const retry = 10 * time.Minute

// sight is what a handshake with a workload showed, or that it showed nothing.
type sight struct {
	seen *Seen
	// started is when the proxy did that was seen.
	started time.Time
	// again is when to look again; zero if that is not needed.
	again time.Time
}

// memory is what need not be seen again. It may be used from several goroutines.
type memory struct {
	mu     sync.Mutex
	sights map[string]sight
	// era is what the control plane gives. What was seen before it changed says nothing, also if it changes back.
	era string
}

// enter forgets what was seen in another era. Nobody knows what an era is in which some of the control plane did not answer.
func (m *memory) enter(all []*Answer, blind bool) {
	var eras []string
	for _, a := range all {
		eras = append(eras, a.Signer+string(a.BundlePEM))
	}
	slices.Sort(eras)
	era := strings.Join(slices.Compact(eras), " ")
	m.mu.Lock()
	defer m.mu.Unlock()
	if blind || era != m.era {
		m.sights = nil
	}
	m.era = era
}

// recall is what is known of a workload. It is false if it has to be looked at.
func (m *memory) recall(w *Workload, now time.Time) (*Seen, bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	s, ok := m.sights[w.UID]
	if !ok || !s.started.Equal(w.Started) || !s.again.IsZero() && !now.Before(s.again) {
		return nil, false
	}
	return s.seen, true
}

// remember keeps what does not change by itself: that a workload holds what the control plane gives now. What is behind
// is looked at each time; what cannot be seen, after a while.
func (m *memory) remember(w *Workload, seen *Seen, complete bool, now time.Time) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.sights == nil {
		m.sights = map[string]sight{}
	}
	switch {
	case seen == nil:
		m.sights[w.UID] = sight{started: w.Started, again: now.Add(retry)}
	case complete:
		m.sights[w.UID] = sight{started: w.Started, seen: seen}
	default:
		delete(m.sights, w.UID)
	}
}

// keep forgets all but these workloads.
func (m *memory) keep(workloads []Workload) {
	m.mu.Lock()
	defer m.mu.Unlock()
	left := make(map[string]sight, len(workloads))
	for i := range workloads {
		if s, ok := m.sights[workloads[i].UID]; ok {
			left[workloads[i].UID] = s
		}
	}
	m.sights = left
}
