package watch

import (
	"context"
	"time"

	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/rest"

	"github.com/meshctl/meshctl/engine/kube"
	"github.com/meshctl/meshctl/engine/snapshot"
)

// setup is what all sessions of a Source have in common.
type setup struct {
	scheme *runtime.Scheme
	// probe is the pause between two questions whether the API server answers.
	probe time.Duration
	// timeout is how long one answer may take.
	timeout time.Duration
}

// tolerated is how many probes in a row must fail until a cluster is frozen:
// one lost answer is no outage.
const tolerated = 2

// reading is the reason while a cluster that answers has not been read yet.
const reading = "its objects are still being read"

// session follows one cluster with one credential until it is stopped: it waits
// for an answer, reads everything, watches, and freezes and starts again when
// the answers stop. What it finds goes to the member that owns it.
type session struct {
	member *member
	config *rest.Config
	setup
}

func (s *session) run(ctx context.Context) {
	for ctx.Err() == nil {
		seed, _ := s.member.current()
		p, err := newManagedPlane(s.config, s.scheme, seed, s.member.touch)
		if err != nil {
			// The configuration itself is unusable; only another one can help.
			s.member.freeze(s, kube.Reason(s.config.Host, err))
			<-ctx.Done()
			return
		}
		p.log = s.member.log
		if s.await(ctx, p.client) {
			p.start(ctx)
			s.follow(ctx, p)
		}
		p.stop()
	}
}

// await returns once the API server answers; false if ctx ended first.
func (s *session) await(ctx context.Context, c *kube.Client) bool {
	for {
		err := c.Probe(ctx, s.timeout)
		if err == nil {
			return true
		}
		if ctx.Err() != nil {
			return false
		}
		s.member.freeze(s, kube.Reason(s.config.Host, err))
		c.CloseIdle()
		select {
		case <-ctx.Done():
			return false
		case <-time.After(s.probe):
		}
	}
}

// follow publishes the plane once it is complete and watches over it. It
// returns when the plane can be trusted no more.
func (s *session) follow(ctx context.Context, p *plane[snapshot.Cluster]) {
	soon := s.probe / 5
	next := time.NewTimer(s.probe)
	defer next.Stop()
	failures, hurried := 0, false
	for {
		switch {
		case p.published.Load():
		case p.isFilled():
			s.member.publish(s, p)
		default:
			s.member.explain(s, reading)
		}
		select {
		case <-ctx.Done():
			return
		case <-p.progress:
			continue
		case <-p.failed:
			if !hurried {
				hurried = true
				next.Reset(soon)
			}
			continue
		case <-next.C:
			hurried = false
		}
		err := p.client.Probe(ctx, s.timeout)
		if ctx.Err() != nil {
			return
		}
		if err == nil {
			failures = 0
			next.Reset(s.probe)
			if s.cutOff(p) {
				return
			}
			continue
		}
		if failures++; failures >= tolerated {
			s.member.freeze(s, kube.Reason(s.config.Host, err))
			return
		}
		next.Reset(soon)
	}
}

// cutOff freezes a cluster that answers, but of which a kind cannot be read:
// a permission is missing. It reports whether the plane was in use, and can be
// trusted no more.
func (s *session) cutOff(p *plane[snapshot.Cluster]) bool {
	kind, err := p.trouble()
	if err == nil {
		return false
	}
	s.member.freeze(s, kind.Info().Resource+" cannot be read: "+kube.Reason(s.config.Host, err))
	return p.published.Load()
}
