package watch

import (
	"cmp"
	"context"
	"log/slog"
	"sync"
	"sync/atomic"

	"k8s.io/client-go/rest"

	"github.com/meshctl/meshctl/engine/kube"
	"github.com/meshctl/meshctl/engine/mirror"
	"github.com/meshctl/meshctl/engine/snapshot"
)

// clusterState is the state of one registered cluster, and the sessions that
// keep it up to date. At most two sessions run at a time: the active one, and a
// candidate with a newer credential that has not read everything yet.
type clusterState struct {
	settings sessionSettings
	log      *slog.Logger
	// notify is called, without locks held, when the view may have changed.
	notify func()
	// silences counts watches that delivered nothing.
	silences atomic.Int64
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

func newClusterState(name string, settings sessionSettings, log *slog.Logger, notify func()) *clusterState {
	return &clusterState{
		settings: settings, log: log.With("cluster", name), notify: notify, dirty: true,
		next: snapshot.Cluster{Name: name, Reason: snapshot.Reading},
	}
}

// connect watches the cluster with a configuration. If it is a new one, the
// lists stay those of the old one until the new one has read everything.
func (c *clusterState) connect(ctx context.Context, group *sync.WaitGroup, domain string, config *rest.Config) {
	c.turn.Lock()
	defer c.turn.Unlock()
	ctx, cancel := context.WithCancel(ctx)
	s := &session{cluster: c, config: config, sessionSettings: c.settings, budget: kube.NewBudget(c.settings.bounds), hurry: make(chan struct{}, 1)}
	started := false
	c.update(func() bool {
		c.next.Domain = domain
		if c.newest().uses(config) {
			return true
		}
		started = true
		c.candidate.stop()
		c.candidate = &runningSession{session: s, cancel: cancel}
		if c.next.Sync != snapshot.Synced {
			c.promote()
			c.next.Reason = snapshot.Reading // why the old one failed says nothing about the new one
		}
		return true
	})
	if !started {
		cancel()
		return
	}
	c.link.Begin()
	group.Go(func() {
		defer cancel()
		s.run(ctx)
	})
}

// hurry makes the sessions that wait for their API server ask it at once.
func (c *clusterState) hurry() {
	c.update(func() bool {
		if c.next.Sync != snapshot.Synced {
			c.next.Reason = snapshot.Reading
		}
		return true
	})
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, running := range []*runningSession{c.active, c.candidate} {
		if running != nil {
			signal(running.session.hurry)
		}
	}
}

// setCredential notes which credential the state is about.
func (c *clusterState) setCredential(fingerprint string) {
	c.update(func() bool {
		c.next.Credential = fingerprint
		return true
	})
}

// newest is the session with the newest credential, if any.
func (c *clusterState) newest() *runningSession { return cmp.Or(c.candidate, c.active) }

// setUnusable records that the cluster is registered but cannot be used. Lists
// that were read before stay, frozen.
func (c *clusterState) setUnusable(domain, reason string) {
	c.turn.Lock()
	defer c.turn.Unlock()
	c.update(func() bool {
		c.stopSessions()
		c.next.Domain = domain
		c.setFrozen(reason)
		return true
	})
	c.link.Reset()
}

// stop cancels all sessions and does not wait for them.
func (c *clusterState) stop() {
	c.turn.Lock()
	defer c.turn.Unlock()
	c.mu.Lock()
	c.stopSessions()
	c.mu.Unlock()
	c.link.Reset()
}

func (c *clusterState) stopSessions() {
	c.active.stop()
	c.candidate.stop()
	c.active, c.candidate = nil, nil
}

// promote makes the candidate, if there is one, the active session.
func (c *clusterState) promote() {
	if c.candidate != nil {
		c.active.stop()
		c.active, c.candidate = c.candidate, nil
	}
}

// publish makes a complete cache the source of the lists.
func (c *clusterState) publish(s *session, cache *clusterCache[snapshot.Cluster]) {
	c.turn.Lock()
	defer c.turn.Unlock()
	used := false
	c.update(func() bool {
		if c.candidate.is(s) {
			c.promote()
		}
		if !c.active.is(s) {
			return false
		}
		used = true
		cache.published.Store(true)
		c.cache, c.settled = cache, true
		c.next.Sync, c.next.Reason = snapshot.Synced, ""
		return true
	})
	if used {
		c.link.Use(cache.conn)
	}
}

// freeze keeps the lists as they are because the cluster cannot be read: reason is what err means.
func (c *clusterState) freeze(s *session, reason string, err error) {
	c.turn.Lock()
	defer c.turn.Unlock()
	frozen := false
	c.update(func() bool {
		if r := c.candidate; r.is(s) && r.loggedReason != reason {
			r.loggedReason = reason
			c.log.Warn("the new credential of the cluster does not work; the previous one stays in use", "reason", reason)
		}
		if !c.active.is(s) {
			return false
		}
		frozen = true
		c.setFrozen(reason)
		c.promote()
		return true
	})
	if frozen {
		c.link.Lose(err)
	}
}

func (c *clusterState) setFrozen(reason string) {
	c.settled = true
	c.next.Sync, c.next.Reason = snapshot.Unsynced, reason
	if c.cache != nil {
		c.next.Sync = snapshot.Stale
	}
}

// setReason gives a reason to a cluster that is not settled yet.
func (c *clusterState) setReason(s *session, reason string) {
	c.update(func() bool {
		if !c.active.is(s) || c.settled {
			return false
		}
		c.next.Reason = reason
		return true
	})
}

// onChange is called when an object of the published cache changed.
func (c *clusterState) onChange() {
	c.mu.Lock()
	c.dirty = true
	c.mu.Unlock()
	c.notify()
}

// update runs f under the lock, which reports whether it changed anything but
// the lists. It logs a new state, and notifies the source if anything is new.
func (c *clusterState) update(f func() bool) {
	c.mu.Lock()
	before, cache := c.next, c.cache
	changed := f()
	newState := c.next.Sync != before.Sync || c.next.Reason != before.Reason
	changed = changed && (newState || c.next.Domain != before.Domain || c.next.Credential != before.Credential || c.cache != cache)
	if newState && c.settled {
		c.logState()
	}
	c.dirty = c.dirty || changed
	c.mu.Unlock()
	if changed {
		c.notify()
	}
}

func (c *clusterState) logState() {
	if c.next.Sync == snapshot.Synced {
		c.log.Info("cluster is synced")
		return
	}
	c.log.Warn("cluster is "+c.next.Sync.String()+"; nothing is written there", "reason", c.next.Reason)
}

func (c *clusterState) isSettled() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.settled
}

// current returns the cluster as it is now, the same pointer until something
// changes, and its objects that cannot be processed.
func (c *clusterState) current() (*snapshot.Cluster, []snapshot.Failure) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if !c.dirty {
		return c.view, c.failures
	}
	c.dirty = false
	changed := c.view == nil || c.view.Domain != c.next.Domain || c.view.Sync != c.next.Sync || c.view.Reason != c.next.Reason ||
		c.view.Credential != c.next.Credential
	if c.cache != nil {
		changed = c.cache.copyTo(&c.next) || changed
		c.failures = c.cache.failures(c.next.Name)
	}
	if changed {
		view := c.next
		c.view = &view
	}
	return c.view, c.failures
}
