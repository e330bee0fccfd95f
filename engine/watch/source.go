package watch

import (
	"cmp"
	"context"
	"errors"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/rest"

	"github.com/meshctl/meshctl/engine/api/scheme"
	"github.com/meshctl/meshctl/engine/snapshot"
)

// Options configure a Source. Only Management is required.
type Options struct {
	// Management is how to reach the management cluster.
	Management *rest.Config
	// Namespace holds registrations and discovered objects;
	// snapshot.DefaultNamespace if empty.
	Namespace string
	// Told is closed once Set was called for every cluster that was registered
	// at the start; nothing is translated before, since a cluster that is not
	// known is taken for one that is gone. Nil: there is nothing to wait for.
	Told <-chan struct{}
	// Log is told when a cluster's state changes; slog.Default() if nil.
	Log *slog.Logger
	// Grace bounds the wait for registered clusters at the start; 10 s if zero.
	Grace time.Duration
	// RefuseIntersecting is that of the Inputs. Who reads statuses (see Statuses)
	// takes what the server runs with instead.
	RefuseIntersecting bool
	// Version is that of the Inputs.
	Version string
	// Probe is the pause between two questions whether an API server answers;
	// 5 s if zero. A cluster is frozen after two questions without an answer,
	// of which the second comes after a fifth of the pause.
	Probe time.Duration
	// Timeout is how long an API server may take to answer; 3 s if zero.
	Timeout time.Duration
	// Statuses keeps the statuses that a server writes, for who looks on. Who
	// writes them leaves them out: a status of its own is no news to it.
	Statuses bool
}

// Source turns what API servers say into snapshot.Inputs. Its methods may be
// called from any goroutine, before and while Run runs.
type Source struct {
	options    Options
	scheme     *runtime.Scheme
	management *plane[snapshot.Management]
	changed    chan struct{}
	// settling is signalled with each change until the gate opens; open is set
	// then.
	settling chan struct{}
	open     atomic.Bool

	ctx    context.Context
	cancel context.CancelFunc
	group  sync.WaitGroup

	mu       sync.Mutex
	members  map[string]*member
	failures []snapshot.Failure
	input    inputCache
}

// New prepares a Source. It dials nobody.
func New(o Options) (*Source, error) {
	if o.Management == nil {
		return nil, errors.New("watch: no configuration for the management cluster was given")
	}
	o.Namespace = cmp.Or(o.Namespace, snapshot.DefaultNamespace)
	o.Log = cmp.Or(o.Log, slog.Default())
	o.Grace = cmp.Or(o.Grace, 10*time.Second)
	o.Probe = cmp.Or(o.Probe, 5*time.Second)
	o.Timeout = cmp.Or(o.Timeout, 3*time.Second)
	s := &Source{
		options: o, changed: make(chan struct{}, 1), settling: make(chan struct{}, 1),
		scheme: scheme.New(), members: map[string]*member{},
	}
	s.ctx, s.cancel = context.WithCancel(context.Background())
	var err error
	s.management, err = newManagementPlane(o.Management, s.scheme, o.Namespace, statuses(o.Statuses), s.wake)
	if err != nil {
		s.cancel()
		return nil, err
	}
	s.management.log = o.Log
	s.input.management.Namespace = o.Namespace
	return s, nil
}

// Run follows all clusters until ctx ends, and then stops everything. It
// returns an error if the management cluster lacks the CRDs. A Source runs once.
func (s *Source) Run(ctx context.Context) error {
	defer s.stop()
	if err := s.awaitCRDs(ctx); err != nil || ctx.Err() != nil {
		return err
	}
	s.management.start(ctx)
	defer s.management.stop()
	s.awaitManagement(ctx)
	s.awaitClusters(ctx)
	if ctx.Err() == nil {
		s.open.Store(true)
		signal(s.changed)
	}
	s.attend(ctx)
	return nil
}

// stop ends all sessions and waits for them.
func (s *Source) stop() {
	s.mu.Lock()
	s.cancel()
	s.mu.Unlock()
	s.group.Wait()
}

// Changed is signalled when Input would return something new; first when the
// management cluster has been read and each registered cluster has been read,
// or has a reason not to be, or the grace period is over.
func (s *Source) Changed() <-chan struct{} { return s.changed }

// Set adds a cluster, or replaces how it is reached: what was read stays in use
// until everything has been read anew. If err is not nil the cluster is known,
// but cannot be used; err says why in words without times or secrets.
func (s *Source) Set(name, domain string, config *rest.Config, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.ctx.Err() != nil {
		return
	}
	m := s.members[name]
	if m == nil {
		m = newMember(name, setup{s.scheme, s.options.Probe, s.options.Timeout}, s.options.Log, s.wake)
		s.members[name] = m
	}
	switch {
	case err != nil:
		m.refuse(domain, err.Error())
	case config == nil:
		m.refuse(domain, "it has no credential")
	default:
		m.connect(s.ctx, &s.group, domain, config)
	}
}

// Remove forgets a cluster.
func (s *Source) Remove(name string) {
	s.mu.Lock()
	m := s.members[name]
	delete(s.members, name)
	s.mu.Unlock()
	if m != nil {
		m.stop()
		s.wake()
	}
}

// SetFailures sets which writes could not be carried out.
func (s *Source) SetFailures(failures []snapshot.Failure) {
	failures = sortedFailures(failures)
	s.mu.Lock()
	changed := !equality.Semantic.DeepEqual(s.failures, failures)
	if changed {
		s.failures = failures
	}
	s.mu.Unlock()
	if changed {
		s.wake()
	}
}

// wake tells the reader, once the gate is open, that something is new.
func (s *Source) wake() {
	s.input.dirty.Store(true)
	if s.open.Load() {
		signal(s.changed)
		return
	}
	signal(s.settling)
}
