package dashboard

import (
	"context"
	"sync"
	"time"

	"github.com/meshctl/meshctl/engine/reading"
	"github.com/meshctl/meshctl/engine/snapshot"
)

// The Lease is read every leaseEvery, and each time for at most leaseTimeout: a management
// cluster that is unreachable shows within two seconds.
const (
	leaseEvery   = 500 * time.Millisecond
	leaseTimeout = 1200 * time.Millisecond
)

// lease follows who leads, and thereby whether the management cluster answers.
type lease struct {
	readServing func(context.Context) (snapshot.Serving, error)
	// changed receives a value when what get returns has changed.
	changed chan struct{}

	mu          sync.Mutex
	serving     *snapshot.Serving
	unreachable string
}

func newLease(management reading.Management) (*lease, error) {
	readServing, err := management.Serving()
	return &lease{readServing: readServing, changed: make(chan struct{}, 1)}, err
}

// get returns the last answer, nil before the first, and why the Lease cannot be read now; empty if it can.
func (l *lease) get() (serving *snapshot.Serving, unreachable string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.serving, l.unreachable
}

// follow reads it until ctx ends.
func (l *lease) follow(ctx context.Context) {
	for {
		l.read(ctx)
		if pause(ctx, leaseEvery) != nil {
			return
		}
	}
}

func (l *lease) read(ctx context.Context) {
	bounded, cancel := context.WithTimeout(ctx, leaseTimeout)
	defer cancel()
	serving, err := l.readServing(bounded)
	if ctx.Err() != nil {
		return
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	before, was := l.serving, l.unreachable
	if l.unreachable = ""; err != nil {
		l.unreachable = err.Error()
	} else {
		l.serving = &serving
	}
	if l.unreachable != was || before == nil || l.serving != nil && *before != *l.serving {
		select {
		case l.changed <- struct{}{}:
		default:
		}
	}
}
