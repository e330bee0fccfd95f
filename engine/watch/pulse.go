package watch

import (
	"context"
	"time"

	"github.com/meshctl/meshctl/engine/kube"
	"github.com/meshctl/meshctl/engine/mirror"
)

// maxFailedProbes is how many probes in a row must fail until a cluster counts as lost: one lost answer is no outage.
const maxFailedProbes = 2

// pulse probes an API server: at once, then at intervals, sooner after a request failed, and when a writer asks for it.
type pulse struct {
	conn *mirror.Connection
	// interval is the pause between two probes, and timeout how long one may take.
	interval, timeout time.Duration

	next *time.Timer
	// failures is how many probes in a row failed, and err why the last one did.
	failures int
	err      error
	// early: a failed request has brought the next probe forward.
	early bool
}

// beat is what a pulse waited for.
type beat int

const (
	// ended: the context did.
	ended beat = iota
	// progressed: there was a signal of progress.
	progressed
	// answered: the API server is ready.
	answered
	// missed: a probe failed.
	missed
)

func newPulse(conn *mirror.Connection, interval, timeout time.Duration) *pulse {
	return &pulse{conn: conn, interval: interval, timeout: timeout, next: time.NewTimer(0)}
}

// stop releases the timer.
func (p *pulse) stop() { p.next.Stop() }

// lost reports whether the API server is lost.
func (p *pulse) lost() bool { return p.failures >= maxFailedProbes }

// wait returns at the next beat. Progress ends it, and failed requests bring the next probe forward; both may be nil.
func (p *pulse) wait(ctx context.Context, progress, failed <-chan struct{}) beat {
	for {
		select {
		case <-ctx.Done():
			return ended
		case <-progress:
			return progressed
		case pause := <-p.conn.Asked():
			p.next.Reset(pause)
			continue
		case <-failed:
			if !p.early {
				p.early = true
				p.next.Reset(p.soon(1))
			}
			continue
		case <-p.next.C:
			p.early = false
		}
		p.err = p.conn.Probe(ctx, p.timeout)
		switch {
		case ctx.Err() != nil:
			return ended
		case p.err == nil:
			p.failures = 0
			p.next.Reset(p.interval)
			return answered
		}
		p.failures++
		p.next.Reset(p.soon(p.failures))
		return missed
	}
}

// soon is the pause until the next probe after a number of failures.
func (p *pulse) soon(failures int) time.Duration {
	return kube.Backoff(p.interval/5, p.interval/2, failures)
}
