package dashboard

import (
	"context"
	"sync"
	"time"

	"github.com/meshctl/meshctl/engine/reading"
	"github.com/meshctl/meshctl/engine/snapshot"
)

// The Lease is read every leaseEvery, and each time for at most leaseTimeout: a management
// cluster that is away shows within two seconds.
const (
	leaseEvery   = 500 * time.Millisecond
	leaseTimeout = 1200 * time.Millisecond
)

// lease follows who leads, and thereby whether the management cluster answers.
type lease struct {
	ask func(context.Context) (snapshot.Serving, error)
	// changed receives a value when what get returns has changed.
	changed chan struct{}

	mu      sync.Mutex
	serving *snapshot.Serving
	away    string
}

func newLease(management reading.Management) (*lease, error) {
	ask, err := management.Serving()
	return &lease{ask: ask, changed: make(chan struct{}, 1)}, err
}

// get is what was read last, nil if nothing was, and why it cannot be read now; empty if it
// can.
func (l *lease) get() (serving *snapshot.Serving, away string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.serving, l.away
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
	serving, err := l.ask(bounded)
	if ctx.Err() != nil {
		return
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	before, was := l.serving, l.away
	if l.away = ""; err != nil {
		l.away = err.Error()
	} else {
		l.serving = &serving
	}
	if l.away != was || before == nil || l.serving != nil && *before != *l.serving {
		select {
		case l.changed <- struct{}{}:
		default:
		}
	}
}
