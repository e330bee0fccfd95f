package watch

import (
	"cmp"
	"context"
	"log/slog"
	"sync"

	"k8s.io/client-go/rest"

	"github.com/meshctl/meshctl/engine/snapshot"
)

// member is one registered cluster: what is known of it, and the sessions that
// find out. At most two sessions live at a time: the active one, and a
// candidate with a newer credential that has not read everything yet.
type member struct {
	setup
	log *slog.Logger
	// wake is called, without locks held, when the view may have changed.
	wake func()

	mu        sync.Mutex
	active    *running
	candidate *running
	// plane is where the lists come from; nil before anything was read.
	plane *plane[snapshot.Cluster]
	// settled is set once the cluster was read or has a reason not to be.
	settled bool
	// view is what readers have; next is what they will have. They differ only
	// while dirty is set.
	view  *snapshot.Cluster
	next  snapshot.Cluster
	dirty bool
	// failures are the objects that cannot be processed, as of view.
	failures []snapshot.Failure
}

// running is a session and the way to end it.
type running struct {
	session *session
	cancel  context.CancelFunc
	// told is the last reason that was logged about a candidate.
	told string
}

func (r *running) is(s *session) bool { return r != nil && r.session == s }

func (r *running) follows(config *rest.Config) bool { return r != nil && r.session.config == config }

func (r *running) stop() {
	if r != nil {
		r.cancel()
	}
}

func newMember(name string, shared setup, log *slog.Logger, wake func()) *member {
	return &member{
		setup: shared, log: log.With("cluster", name), wake: wake, dirty: true,
		next: snapshot.Cluster{Name: name, Reason: reading},
	}
}

// connect follows the cluster with a configuration. If it is a new one, the
// lists stay those of the old one until the new one has read everything.
func (m *member) connect(ctx context.Context, group *sync.WaitGroup, domain string, config *rest.Config) {
	ctx, cancel := context.WithCancel(ctx)
	s := &session{member: m, config: config, setup: m.setup}
	started := false
	m.change(func() bool {
		m.next.Domain = domain
		if m.latest().follows(config) {
			return true
		}
		started = true
		m.candidate.stop()
		m.candidate = &running{session: s, cancel: cancel}
		if m.next.Sync != snapshot.Synced {
			m.promote()
		}
		return true
	})
	if !started {
		cancel()
		return
	}
	group.Go(func() {
		defer cancel()
		s.run(ctx)
	})
}

// latest is the session with the newest credential, if any.
func (m *member) latest() *running { return cmp.Or(m.candidate, m.active) }

// refuse records that the cluster is known but cannot be used. Lists that were
// read before stay, frozen.
func (m *member) refuse(domain, reason string) {
	m.change(func() bool {
		m.stopSessions()
		m.next.Domain = domain
		m.frozen(reason)
		return true
	})
}

// stop ends all sessions; they run out by themselves.
func (m *member) stop() {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.stopSessions()
}

func (m *member) stopSessions() {
	m.active.stop()
	m.candidate.stop()
	m.active, m.candidate = nil, nil
}

// promote makes the candidate, if there is one, the active session.
func (m *member) promote() {
	if m.candidate != nil {
		m.active.stop()
		m.active, m.candidate = m.candidate, nil
	}
}

// publish makes a complete plane the source of the lists.
func (m *member) publish(s *session, p *plane[snapshot.Cluster]) {
	m.change(func() bool {
		if m.candidate.is(s) {
			m.promote()
		}
		if !m.active.is(s) {
			return false
		}
		p.published.Store(true)
		m.plane, m.settled = p, true
		m.next.Sync, m.next.Reason = snapshot.Synced, ""
		return true
	})
}

// freeze keeps the lists as they are because the cluster cannot be read.
func (m *member) freeze(s *session, reason string) {
	m.change(func() bool {
		if c := m.candidate; c.is(s) && c.told != reason {
			c.told = reason
			m.log.Warn("the cluster's new credential does not work; the one before stays in use", "reason", reason)
		}
		if !m.active.is(s) {
			return false
		}
		m.frozen(reason)
		m.promote()
		return true
	})
}

func (m *member) frozen(reason string) {
	m.settled = true
	m.next.Sync, m.next.Reason = snapshot.Unsynced, reason
	if m.plane != nil {
		m.next.Sync = snapshot.Stale
	}
}

// explain gives a reason to a cluster that has none yet.
func (m *member) explain(s *session, reason string) {
	m.change(func() bool {
		if !m.active.is(s) || m.settled {
			return false
		}
		m.next.Reason = reason
		return true
	})
}

// touch is called when an object of the published plane changed.
func (m *member) touch() {
	m.mu.Lock()
	m.dirty = true
	m.mu.Unlock()
	m.wake()
}

// change runs f, which reports whether it changed anything but the lists, and
// wakes the source if something is new.
func (m *member) change(f func() bool) {
	m.mu.Lock()
	before := m.next
	plane := m.plane
	changed := f()
	told := m.next.Sync != before.Sync || m.next.Reason != before.Reason
	changed = changed && (told || m.next.Domain != before.Domain || m.plane != plane)
	if told && m.settled {
		m.tell()
	}
	m.dirty = m.dirty || changed
	m.mu.Unlock()
	if changed {
		m.wake()
	}
}

// tell logs the state.
func (m *member) tell() {
	if m.next.Sync == snapshot.Synced {
		m.log.Info("cluster is synced")
		return
	}
	m.log.Warn("cluster is "+m.next.Sync.String()+"; nothing is written there", "reason", m.next.Reason)
}

func (m *member) isSettled() bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.settled
}

// current is the cluster as it is now, the same pointer until something changes,
// and its objects that cannot be processed.
func (m *member) current() (*snapshot.Cluster, []snapshot.Failure) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if !m.dirty {
		return m.view, m.failures
	}
	m.dirty = false
	changed := m.view == nil || m.view.Domain != m.next.Domain || m.view.Sync != m.next.Sync || m.view.Reason != m.next.Reason
	if m.plane != nil {
		changed = m.plane.refill(&m.next) || changed
		m.failures = m.plane.failures(m.next.Name)
	}
	if changed {
		view := m.next
		m.view = &view
	}
	return m.view, m.failures
}
