package watch

import (
	"cmp"
	"context"
	"errors"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	"k8s.io/client-go/rest"

	"github.com/meshctl/meshctl/engine/kube"
	"github.com/meshctl/meshctl/engine/mirror"
	"github.com/meshctl/meshctl/engine/snapshot"
)

// registered is a cluster of a Source, however it is connected.
type registered interface {
	// current is the cluster as it is now, the same pointer until something changes, and its objects that cannot be processed.
	current() (*snapshot.Cluster, []snapshot.Failure)
	// isSettled reports whether the cluster was read, or has a reason not to be.
	isSettled() bool
	// heard is when the cluster last sent something about what it has sent nothing about for longest; zero before everything was read.
	heard() time.Time
	// counts are how many watches were ended because they delivered nothing, and how many changes counted together with others.
	counts() (silences, collected int64)
	// writers is the way there for those who write.
	writers() *mirror.Link
	// renewed says that the configuration has another credential, and setCredential which.
	renewed()
	setCredential(fingerprint string)
	// setUnusable says why the cluster cannot be used. What was read before stays.
	setUnusable(domain string, cause snapshot.Code, reason string)
	// stop ends all that runs, and does not wait for it.
	stop()
}

// member is the state of one cluster that is read directly, and the sessions that
// keep it up to date. At most two sessions run at a time: the active one, and a
// candidate with a newer credential that has not read everything yet.
type member struct {
	settings sessionSettings
	log      *slog.Logger
	// notify is called, without locks held, when the view may have changed.
	notify func()
	// silences counts watches that delivered nothing, and collected changes that counted together with others.
	silences, collected atomic.Int64
	// link is what writers have of the cluster. Turn is held while it and the state change together.
	link mirror.Link
	turn sync.Mutex

	mu        sync.Mutex
	active    *runningSession
	candidate *runningSession
	// cache is where the lists come from; nil before anything was read.
	cache *clusterCache[snapshot.Cluster]
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

// runningSession is a session and the way to end it.
type runningSession struct {
	session *session
	cancel  context.CancelFunc
	// loggedReason is the last reason that was logged about a candidate.
	loggedReason string
}

func (r *runningSession) is(s *session) bool { return r != nil && r.session == s }

func (r *runningSession) uses(config *rest.Config) bool {
	return r != nil && r.session.config == config
}

func (r *runningSession) stop() {
	if r != nil {
		r.cancel()
	}
}

// newMember prepares the state of a cluster; the seed is what was known of it before.
func newMember(seed *snapshot.Cluster, settings sessionSettings, log *slog.Logger, notify func()) *member {
	m := &member{settings: settings, log: log.With("cluster", seed.Name), notify: notify, dirty: true, next: *seed}
	m.next.Sync, m.next.Relay = min(m.next.Sync, snapshot.Stale), nil
	m.next.SetReading()
	return m
}

// connect watches the cluster with a configuration. If it is a new one, the
// lists stay those of the old one until the new one has read everything.
func (m *member) connect(ctx context.Context, group *sync.WaitGroup, domain string, config *rest.Config) {
	m.turn.Lock()
	defer m.turn.Unlock()
	ctx, cancel := context.WithCancel(ctx)
	s := &session{cluster: m, config: config, sessionSettings: m.settings, budget: kube.NewBudget(m.settings.bounds)}
	started := false
	m.update(func() bool {
		m.next.Domain = domain
		if m.newest().uses(config) {
			return true
		}
		started = true
		m.candidate.stop()
		m.candidate = &runningSession{session: s, cancel: cancel}
		if m.next.Sync != snapshot.Synced {
			m.promote()
			m.next.SetReading() // why the old one failed says nothing about the new one
		}
		return true
	})
	if !started {
		cancel()
		return
	}
	m.link.Begin()
	group.Go(func() {
		defer cancel()
		s.run(ctx)
	})
}

// renewed makes the sessions probe their API server at once, because the credential is another.
func (m *member) renewed() {
	m.update(func() bool {
		if m.next.Sync != snapshot.Synced {
			m.next.SetReading()
		}
		return true
	})
	m.mu.Lock()
	defer m.mu.Unlock()
	for _, running := range []*runningSession{m.active, m.candidate} {
		if running != nil {
			running.session.probeAtOnce()
		}
	}
}

// setCredential notes which credential the state is about.
func (m *member) setCredential(fingerprint string) {
	m.update(func() bool {
		m.next.Credential = fingerprint
		return true
	})
}

// newest is the session with the newest credential, if any.
func (m *member) newest() *runningSession { return cmp.Or(m.candidate, m.active) }

// setUnusable records that the cluster is registered but cannot be used. Lists
// that were read before stay, frozen.
func (m *member) setUnusable(domain string, cause snapshot.Code, reason string) {
	m.turn.Lock()
	defer m.turn.Unlock()
	m.update(func() bool {
		m.stopSessions()
		m.next.Domain = domain
		m.setFrozen(cause, reason)
		return true
	})
	m.link.Reset()
}

// stop cancels all sessions and does not wait for them.
func (m *member) stop() {
	m.turn.Lock()
	defer m.turn.Unlock()
	m.mu.Lock()
	m.stopSessions()
	m.mu.Unlock()
	m.link.Reset()
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

// publish makes a complete cache the source of the lists.
func (m *member) publish(s *session, cache *clusterCache[snapshot.Cluster]) {
	m.turn.Lock()
	defer m.turn.Unlock()
	used := false
	m.update(func() bool {
		if m.candidate.is(s) {
			m.promote()
		}
		if !m.active.is(s) {
			return false
		}
		used = true
		cache.published.Store(true)
		m.cache, m.settled = cache, true
		m.next.Sync, m.next.Cause, m.next.Reason, m.next.Reading = snapshot.Synced, "", "", false
		return true
	})
	if used {
		m.link.Use(cache.conn)
	}
}

// freeze keeps the lists as they are because the cluster cannot be read: reason is what err means.
func (m *member) freeze(s *session, reason string, err error) {
	m.turn.Lock()
	defer m.turn.Unlock()
	var notUsed kube.NotUsed
	if errors.As(err, &notUsed) {
		reason = snapshot.ReasonOf("", notUsed).What // the next step follows from the cause
	}
	frozen := false
	m.update(func() bool {
		if r := m.candidate; r.is(s) && r.loggedReason != reason {
			r.loggedReason = reason
			m.log.Warn("the new credential of the cluster does not work; the previous one stays in use", "reason", reason)
		}
		if !m.active.is(s) {
			return false
		}
		frozen = true
		m.setFrozen(kube.Cause(err), reason)
		m.promote()
		return true
	})
	if frozen {
		m.link.Lose(err)
	}
}

func (m *member) setFrozen(cause snapshot.Code, reason string) {
	m.settled = true
	m.next.Cause, m.next.Reason, m.next.Reading = cause, reason, false
	m.next.Sync = min(m.next.Sync, snapshot.Stale)
}

// setReading says of a cluster that is not settled yet that it answers.
func (m *member) setReading(s *session) {
	m.update(func() bool {
		if !m.active.is(s) || m.settled {
			return false
		}
		m.next.SetReading()
		return true
	})
}

// onChange is called when an object of the published cache changed.
func (m *member) onChange() {
	m.mu.Lock()
	m.dirty = true
	m.mu.Unlock()
	m.notify()
}

// update runs f under the lock, which reports whether it changed anything but
// the lists. It logs a new state, and notifies the source if anything is new.
func (m *member) update(f func() bool) {
	m.mu.Lock()
	before, cache := m.next, m.cache
	changed := f()
	newState := m.next.Sync != before.Sync || m.next.Reason != before.Reason
	changed = changed && (newState || m.next.Domain != before.Domain || m.next.Credential != before.Credential || m.cache != cache)
	if newState && m.settled {
		logSync(m.log, m.next)
	}
	m.dirty = m.dirty || changed
	m.mu.Unlock()
	if changed {
		m.notify()
	}
}

// logSync logs the state of a cluster that is another than before.
func logSync(log *slog.Logger, c snapshot.Cluster) {
	if c.Sync == snapshot.Synced {
		log.Info("cluster is synced")
		return
	}
	log.Warn("cluster is "+c.Sync.String()+"; nothing is written there", "reason", c.Reason)
}

func (m *member) counts() (silences, collected int64) { return m.silences.Load(), m.collected.Load() }

func (m *member) writers() *mirror.Link { return &m.link }

func (m *member) isSettled() bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.settled
}

// current returns the cluster as it is now, the same pointer until something
// changes, and its objects that cannot be processed.
func (m *member) current() (*snapshot.Cluster, []snapshot.Failure) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if !m.dirty {
		return m.view, m.failures
	}
	m.dirty = false
	changed := m.view == nil || m.view.Domain != m.next.Domain || m.view.Sync != m.next.Sync || m.view.Reason != m.next.Reason ||
		m.view.Credential != m.next.Credential
	if m.cache != nil {
		changed = m.cache.copyTo(&m.next) || changed
		m.failures = m.cache.failures(m.next.Name)
	}
	if changed {
		view := m.next
		m.view = &view
	}
	return m.view, m.failures
}
