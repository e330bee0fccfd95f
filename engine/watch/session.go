package watch

import (
	"context"
	"time"

	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/rest"

	"github.com/meshctl/meshctl/engine/kube"
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

// maxFailedProbes is how many probes in a row must fail until a cluster is
// frozen: one lost answer is no outage.
const maxFailedProbes = 2

// session watches one cluster with one credential until it is stopped: it waits
// until the API server is ready, reads everything, watches, and freezes the
// cluster and starts again when the API server stops answering. It reports to
// the state of its cluster.
type session struct {
	sessionSettings
	cluster *clusterState
	config  *rest.Config
	// budget bounds what the API server may send; exceeding it looks like an outage.
	budget *kube.Budget
	// hurry receives a value when a probe that failed may succeed now.
	hurry chan struct{}
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
		cache.log, cache.silence, cache.silences = s.cluster.log, s.silence, &s.cluster.silences
		if s.awaitReady(ctx, cache.client) {
			cache.start(ctx)
			s.watch(ctx, cache)
		}
		cache.stop()
	}
}

// awaitReady returns once the API server is ready; false if ctx ended first.
func (s *session) awaitReady(ctx context.Context, client *kube.Client) bool {
	for failures := 1; ; failures++ {
		err := client.Probe(ctx, s.probeTimeout)
		if err == nil {
			return true
		}
		if ctx.Err() != nil {
			return false
		}
		s.cluster.freeze(s, kube.Reason(s.config.Host, err), err)
		client.CloseIdle()
		select {
		case <-ctx.Done():
			return false
		case <-s.hurry:
			failures = 0
		case <-time.After(kube.Backoff(s.probeInterval/5, s.probeInterval/2, failures)):
		}
	}
}

// watch publishes the cache once it is complete, and probes the API server. It
// returns when the cache can no longer be relied on.
func (s *session) watch(ctx context.Context, cache *clusterCache[snapshot.Cluster]) {
	soon := s.probeInterval / 5
	next := time.NewTimer(s.probeInterval)
	defer next.Stop()
	failures, hurried := 0, false
	for {
		switch {
		case cache.published.Load():
		case cache.isFilled():
			s.cluster.publish(s, cache)
		default:
			s.cluster.setReason(s, snapshot.Reading)
		}
		select {
		case <-ctx.Done():
			return
		case <-cache.progress:
			continue
		case pause := <-cache.conn.Asked():
			next.Reset(pause)
			continue
		case <-cache.failed:
			if !hurried {
				hurried = true
				next.Reset(soon)
			}
			continue
		case <-next.C:
			hurried = false
		}
		err := cache.client.Probe(ctx, s.probeTimeout)
		if ctx.Err() != nil {
			return
		}
		if err == nil {
			failures = 0
			next.Reset(s.probeInterval)
			s.cluster.link.Resume(cache.conn)
			if s.freezeIfUnreadable(cache) || s.freezeIfSilent(cache) {
				return
			}
			continue
		}
		if failures++; failures >= maxFailedProbes {
			s.cluster.freeze(s, kube.Reason(s.config.Host, err), err)
			return
		}
		next.Reset(soon)
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
