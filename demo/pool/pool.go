// Package pool lends API servers to tests, which use one after another instead of each starting its own:
//
//   - pool.go: starts API servers, lends them, and puts them back to how they were
//   - socket.go: lets the test binaries of a whole run share a pool
package pool

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"time"

	"github.com/meshctl/meshctl/demo/kube"
	"github.com/meshctl/meshctl/demo/local"
	"github.com/meshctl/meshctl/demo/proc"
)

// Pool starts API servers when none is free, and keeps those that are given back.
type Pool struct {
	options Options

	mu      sync.Mutex
	changed *sync.Cond
	servers []*server
	// starts counts the servers that were ever started, for the names of their folders.
	starts int
	closed bool
}

// Options say where a pool has its servers.
type Options struct {
	// Dir is the folder of the servers, Helper the path of the helper binary (helper.Build).
	Dir, Helper string
	// Guard kills the processes when the caller dies.
	Guard *proc.Guard
	// Report is called with what tests did that they must not, and Note with why a server had to end that no test has harmed; both
	// from any goroutine.
	Report, Note func(string)
	// PauseAfter is how long nobody has a server until its processes are paused: an API server and its etcd need 2 to 3 % of a core each
	// while they do nothing. Never if zero.
	PauseAfter time.Duration
}

type phase int

const (
	lent phase = iota
	// restoring will be free soon.
	restoring
	free
)

// server is an API server of the pool.
type server struct {
	cluster   *local.Cluster
	recording *local.Recording
	index     int
	processes []proc.Process
	phase     phase
	// prepared is how a test has prepared it, for those that want the same: what it had stored is in the recording.
	prepared string
	// holder is the last test that had it.
	holder string
	// freed is how often it became free. paused: its processes are.
	freed  int
	paused bool
}

func (s *server) dir() string { return filepath.Dir(s.cluster.Kubeconfig()) }

// New returns a pool without servers.
func New(o Options) *Pool {
	p := &Pool{options: o}
	p.changed = sync.NewCond(&p.mu)
	return p
}

// Loan is an API server that a test has for itself.
type Loan struct {
	// Dir is the folder of the server, for local.Open.
	Dir string
	// Prepared: it is as an earlier test has prepared it.
	Prepared bool

	keep func(context.Context) error
	back func()
}

// Keep says that the server is prepared now: it stays so for later tests that ask for that. It returns once nothing is written any more.
func (l Loan) Keep(ctx context.Context) error { return l.keep(ctx) }

// Return gives the server back: whatever was stored in it meanwhile goes. It may be called several times.
func (l Loan) Return() { l.back() }

// Wish says which API server a test wants.
type Wish struct {
	// Holder is the test, for messages.
	Holder string `json:"holder"`
	// Index, from 1 on, is that of local.Options: the server is called cluster-INDEX.
	Index int `json:"index"`
	// Prepared names what the test has to store there before anything else, unless an earlier one has; empty for nothing.
	Prepared string `json:"prepared,omitempty"`
}

// Lend returns an API server with only what each has from the start, or also with what tests prepare.
func (p *Pool) Lend(ctx context.Context, w Wish) (Loan, error) {
	s, err := p.take(ctx, w)
	if err != nil {
		return Loan{}, err
	}
	return Loan{
		Dir: s.dir(), Prepared: s.prepared != "",
		keep: func(ctx context.Context) error {
			recording, err := s.cluster.Record(ctx)
			if err == nil {
				p.set(func() { s.recording, s.prepared = recording, w.Prepared })
			}
			return err
		},
		back: sync.OnceFunc(func() {
			p.set(func() { s.phase = restoring })
			go p.restore(s)
		}),
	}, nil
}

func (p *Pool) take(ctx context.Context, w Wish) (*server, error) {
	for {
		s, err := p.reserve(w)
		if err != nil {
			return nil, err
		}
		if s == nil {
			return p.start(ctx, w)
		}
		left, err := p.changes(ctx, s)
		foreign := local.Foreign(left)
		if err == nil && len(left) > 0 && len(foreign) == 0 {
			left, err = nil, s.cluster.Restore(ctx, s.recording)
		}
		if err == nil && len(left) == 0 {
			p.set(func() { s.holder = w.Holder })
			return s, nil
		}
		if err != nil {
			p.options.Note(fmt.Sprintf("%s had the one that is replaced: %v", s.holder, err))
		}
		// It is written by somebody who does not have it any more.
		if len(foreign) > 0 {
			p.options.Report(fmt.Sprintf("%s still writes after it has ended: %v", s.holder, foreign[:min(len(foreign), 5)]))
		}
		if err := p.drop(s); err != nil {
			return nil, err
		}
	}
}

// changes is what differs from the recording in a server that was free.
func (p *Pool) changes(ctx context.Context, s *server) ([]string, error) {
	if s.paused {
		s.paused = false
		if err := s.resume(ctx); err != nil {
			return nil, err
		}
	}
	return s.cluster.Changes(ctx, s.recording)
}

// resumeTimeout bounds the wait for an API server that was paused; another one starts in a few seconds.
const resumeTimeout = time.Minute

// resume has the processes go on, and returns when the API server is ready.
func (s *server) resume(ctx context.Context) error {
	for _, process := range s.processes {
		if err := process.Resume(); err != nil {
			return fmt.Errorf("cluster %s: %w", s.cluster.Name(), err)
		}
	}
	client, err := s.cluster.Client()
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, resumeTimeout)
	defer cancel()
	return kube.Until(ctx, fmt.Sprintf("cluster %s: waiting for its API server to go on", s.cluster.Name()), func(ctx context.Context) error {
		for _, process := range s.processes {
			if !process.Alive() {
				return kube.Final(fmt.Errorf("cluster %s: %s: %w", s.cluster.Name(), process.Name, os.ErrProcessDone))
			}
		}
		return client.Ready(ctx)
	})
}

// pause pauses a server that nobody has had since it became free for the nth time.
func (p *Pool) pause(s *server, nth int) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if s.phase != free || s.freed != nth {
		return
	}
	s.paused = true
	for _, process := range slices.Backward(s.processes) { // the API server first
		if err := process.Pause(); err != nil {
			p.options.Note(fmt.Sprintf("after %s: %v", s.holder, err))
		}
	}
}

// reserve returns a server that is free, or will soon be; nil if there is none. One that is prepared already goes before one that is
// not prepared at all.
func (p *Pool) reserve(w Wish) (*server, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for {
		if p.closed {
			return nil, fmt.Errorf("API server for %s: the pool is closed", w.Holder)
		}
		soon := false
		for _, prepared := range slices.Compact([]string{w.Prepared, ""}) {
			for _, s := range p.servers {
				fits := s.index == w.Index && s.prepared == prepared
				if fits && s.phase == free {
					s.phase = lent
					return s, nil
				}
				soon = soon || fits && s.phase == restoring
			}
		}
		if !soon {
			return nil, nil //nolint:nilnil // there is none
		}
		p.changed.Wait()
	}
}

func (p *Pool) start(ctx context.Context, w Wish) (*server, error) {
	p.mu.Lock()
	p.starts++
	dir := filepath.Join(p.options.Dir, fmt.Sprintf("%d", p.starts), fmt.Sprintf("cluster-%d", w.Index))
	p.mu.Unlock()
	cluster, err := local.Start(ctx, local.Options{
		Name: filepath.Base(dir), Dir: dir, Helper: p.options.Helper, Index: w.Index, Guard: p.options.Guard, APIServerOnly: true,
	})
	if err != nil {
		return nil, err
	}
	recording, err := cluster.Record(ctx)
	if err != nil {
		return nil, errors.Join(err, cluster.Stop(context.WithoutCancel(ctx)))
	}
	s := &server{cluster: cluster, recording: recording, index: w.Index, processes: cluster.Processes(), phase: lent, holder: w.Holder}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.servers = append(p.servers, s)
	return s, nil
}

// restore makes a server ready for the next test. One that a test has stopped is not used again.
func (p *Pool) restore(s *server) {
	ctx := context.Background()
	err := p.unharmed(s)
	if err == nil {
		err = s.cluster.Restore(ctx, s.recording)
		switch {
		case errors.Is(err, local.ErrServes):
			p.options.Note(fmt.Sprintf("after %s: %v", s.holder, err))
		case err != nil:
			p.options.Report(fmt.Sprintf("after %s: %v", s.holder, err))
		}
	}
	if err != nil {
		if err := p.drop(s); err != nil {
			p.options.Report(fmt.Sprintf("after %s: %v", s.holder, err))
		}
		return
	}
	p.set(func() {
		s.phase = free
		s.freed++
		if nth := s.freed; p.options.PauseAfter > 0 {
			time.AfterFunc(p.options.PauseAfter, func() { p.pause(s, nth) })
		}
	})
}

// unharmed returns an error unless the processes are those that were started.
func (p *Pool) unharmed(s *server) error {
	now, err := local.Open(s.dir(), p.options.Guard)
	if err != nil {
		return err
	}
	same := slices.EqualFunc(now.Processes(), s.processes, func(a, b proc.Process) bool { return a.PID == b.PID && a.Alive() })
	if !same {
		return errors.New("its processes are not those that were started")
	}
	return nil
}

// drop ends a server.
func (p *Pool) drop(s *server) error {
	p.mu.Lock()
	p.servers = slices.DeleteFunc(p.servers, func(other *server) bool { return other == s })
	p.changed.Broadcast()
	p.mu.Unlock()
	ctx := context.Background()
	errs := []error{s.cluster.Stop(ctx)}
	// A test may have started others.
	now, err := local.Open(s.dir(), p.options.Guard)
	if err == nil {
		err = now.Stop(ctx)
	}
	return errors.Join(append(errs, err, os.RemoveAll(filepath.Dir(s.dir())))...)
}

// Clear ends the servers that nobody has. Each needs memory and, of the few that a user may have, three
// instances of inotify, also while it is idle.
func (p *Pool) Clear() error {
	var errs []error
	for _, s := range p.idle() {
		errs = append(errs, p.drop(s))
	}
	return errors.Join(errs...)
}

// idle takes the servers that nobody has, once none is about to be free.
func (p *Pool) idle() (idle []*server) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for slices.ContainsFunc(p.servers, func(s *server) bool { return s.phase == restoring }) {
		p.changed.Wait()
	}
	for _, s := range p.servers {
		if s.phase == free {
			s.phase = lent
			idle = append(idle, s)
		}
	}
	return idle
}

// set changes what is known of a server.
func (p *Pool) set(change func()) {
	p.mu.Lock()
	defer p.mu.Unlock()
	change()
	p.changed.Broadcast()
}

// Close lends nothing any more. The guard ends the servers.
func (p *Pool) Close() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.closed = true
	p.changed.Broadcast()
}
