package watch

import (
	"context"
	"sync/atomic"
	"time"

	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/rest"

	"github.com/meshctl/meshctl/engine/kube"
	"github.com/meshctl/meshctl/engine/mirror"
	"github.com/meshctl/meshctl/engine/snapshot"
)

// sessionSettings are the same for all sessions of a Source.
type sessionSettings struct {
	scheme *runtime.Scheme
	// plane is the management plane, whose own objects are not read.
	plane snapshot.Plane
	// probeInterval is the pause between two probes of the API server.
	probeInterval time.Duration
	// probeTimeout is how long the API server may take to answer one.
	probeTimeout time.Duration
	// bounds are those of each cluster.
	bounds kube.Bounds
	// silence is how long a watch may deliver nothing.
	silence time.Duration
	// keep the statuses that agents write as they are.
	keep statuses
}

// session watches one cluster with one credential until it is stopped: it waits
// until the API server is ready, reads everything, watches, and freezes the
// cluster and starts again when the API server stops answering. It reports to
// the state of its cluster.
type session struct {
	sessionSettings
	cluster *member
	config  *rest.Config
	// budget bounds what the API server may send; exceeding it looks like an outage.
	budget *kube.Budget
	// conn is the connection that is probed; nil before there is one.
	conn atomic.Pointer[mirror.Connection]
}

func (s *session) run(ctx context.Context) {
	for ctx.Err() == nil {
		seed, _ := s.cluster.current()
		cache, err := newManagedCache(s.config, &s.cluster.link, s.scheme, s.plane, seed, s.keep, s.budget, s.cluster.onChange)
		if err != nil {
			// The configuration itself is unusable; only another one can help.
			s.cluster.freeze(s, kube.Reason(s.config.Host, err), err)
			<-ctx.Done()
			return
		}
		cache.log, cache.silence, cache.silences, cache.collect.dropped = s.cluster.log, s.silence, &s.cluster.silences, &s.cluster.collected
		s.conn.Store(cache.conn)
		pulse := newPulse(cache.conn, s.probeInterval, s.probeTimeout)
		if s.awaitReady(ctx, pulse) {
			cache.start(ctx)
			s.watch(ctx, cache, pulse)
		}
		pulse.stop()
		cache.stop()
	}
}

// probeAtOnce asks the API server at once whether it answers, because a probe that failed may succeed now.
func (s *session) probeAtOnce() {
	if conn := s.conn.Load(); conn != nil {
		conn.Ask(0)
	}
}

// awaitReady returns once the API server is ready; false if ctx ended first.
func (s *session) awaitReady(ctx context.Context, pulse *pulse) bool {
	for {
		switch pulse.wait(ctx, nil, nil) {
		case ended:
			return false
		case answered:
			return true
		}
		s.cluster.freeze(s, kube.Reason(s.config.Host, pulse.err), pulse.err)
		pulse.conn.CloseIdle()
	}
}

// watch publishes the cache once it is complete. It returns when the API server is lost, or the cache can no longer be
// relied on.
func (s *session) watch(ctx context.Context, cache *clusterCache[snapshot.Cluster], pulse *pulse) {
	for {
		switch {
		case cache.published.Load():
		case cache.isFilled():
			s.cluster.publish(s, cache)
		default:
			s.cluster.setReading(s)
		}
		switch pulse.wait(ctx, cache.progress, cache.failed) {
		case ended:
			return
		case answered:
			s.cluster.link.Resume(cache.conn)
			if s.freezeIfUnreadable(cache) || s.freezeIfSilent(cache) {
				return
			}
		}
		if pulse.lost() {
			s.cluster.freeze(s, kube.Reason(s.config.Host, pulse.err), pulse.err)
			return
		}
	}
}

// freezeIfUnreadable freezes a cluster that answers, but of which a kind cannot
// be read: a permission is missing. It reports whether the cache was in use, and
// can no longer be relied on.
func (s *session) freezeIfUnreadable(cache *clusterCache[snapshot.Cluster]) bool {
	kind, err := cache.unreadable()
	if err == nil {
		return false
	}
	s.cluster.freeze(s, kind.Info().Resource+" cannot be read: "+kube.Reason(s.config.Host, err), err)
	return cache.published.Load()
}
