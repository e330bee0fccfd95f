package watch

import (
	"cmp"
	"context"
	"errors"
	"log/slog"
	"net/http"
	"sync"
	"sync/atomic"
	"time"

	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/rest"

	"github.com/meshctl/meshctl/engine/api/scheme"
	"github.com/meshctl/meshctl/engine/kube"
	"github.com/meshctl/meshctl/engine/mirror"
	"github.com/meshctl/meshctl/engine/snapshot"
)

// Options configure a Source. Only Management is required.
type Options struct {
	// Management is how to reach the management cluster.
	Management *rest.Config
	// Namespace holds registrations and discovered objects;
	// snapshot.DefaultNamespace if empty.
	Namespace string
	// PlaneID is the identity of the management plane, by which the objects that it wrote
	// are known; empty if any management plane in a namespace of this name will do.
	PlaneID string
	// RegistrySynced is closed once Set was called for every cluster that was
	// registered at the start. There is no Input before, since a cluster that is
	// not in it counts as removed. Nil means that there is nothing to wait for.
	RegistrySynced <-chan struct{}
	// Log receives changes of the state of clusters; slog.Default() if nil.
	Log *slog.Logger
	// Grace bounds the wait for registered clusters at the start; 10 s if zero.
	Grace time.Duration
	// RefuseIntersecting is that of the Inputs. With Statuses, the option with
	// which the server runs is used instead.
	RefuseIntersecting bool
	// Version is that of the Inputs.
	Version string
	// ProbeInterval is the pause between two probes of an API server; 5 s if zero.
	// A cluster is frozen after two failed probes in a row, of which the second
	// comes after a fifth of the pause.
	ProbeInterval time.Duration
	// ProbeTimeout is how long an API server may take to answer a probe; 3 s if zero.
	ProbeTimeout time.Duration
	// Silence is how long a watch may deliver neither an event nor a bookmark until the
	// objects are listed instead; kube.DefaultSilence if zero. A cluster of which for
	// twice this time nothing came at all is frozen.
	Silence time.Duration
	// Bounds are what each registered cluster may send before it is frozen; what is zero is that
	// of kube.DefaultBounds. The management cluster has none.
	Bounds kube.Bounds
	// Statuses keeps the statuses that a server writes, and when agents looked last. The
	// server itself leaves them out: its own writes must not notify it.
	Statuses bool
}

// Source builds snapshot.Inputs from the objects of API servers. Its methods may
// be called from any goroutine, before and while Run runs.
type Source struct {
	options    Options
	scheme     *runtime.Scheme
	management *clusterCache[snapshot.Management]
	// link is what writers have of the management cluster.
	link    mirror.Link
	changed chan struct{}
	// progress is signalled with each change until there is an Input; ready is set
	// then.
	progress chan struct{}
	ready    atomic.Bool

	ctx    context.Context
	cancel context.CancelFunc
	group  sync.WaitGroup

	mu       sync.Mutex
	clusters map[string]registered
	failures []snapshot.Failure
	roots    []*snapshot.VirtualMeshRoots
	logging  *snapshot.Logging
	input    inputCache
}

// New prepares a Source. It does no I/O.
func New(o Options) (*Source, error) {
	if o.Management == nil {
		return nil, errors.New("watch: no configuration for the management cluster was given")
	}
	o.Namespace = cmp.Or(o.Namespace, snapshot.DefaultNamespace)
	o.Log = cmp.Or(o.Log, slog.Default())
	o.Grace = cmp.Or(o.Grace, 10*time.Second)
	o.ProbeInterval = cmp.Or(o.ProbeInterval, 5*time.Second)
	o.ProbeTimeout = cmp.Or(o.ProbeTimeout, 3*time.Second)
	o.Silence = cmp.Or(o.Silence, kube.DefaultSilence)
	s := &Source{
		options: o, changed: make(chan struct{}, 1), progress: make(chan struct{}, 1),
		scheme: scheme.New(), clusters: map[string]registered{},
	}
	s.ctx, s.cancel = context.WithCancel(context.Background())
	var err error
	s.management, err = newManagementCache(o.Management, &s.link, s.scheme, snapshot.Plane{Namespace: o.Namespace, ID: o.PlaneID}, statuses(o.Statuses), s.notify)
	if err != nil {
		s.cancel()
		return nil, err
	}
	s.management.log, s.management.silence = o.Log, o.Silence
	s.link.Begin()
	s.input.management.Namespace, s.input.management.PlaneID = o.Namespace, o.PlaneID
	return s, nil
}

// Run watches all clusters until ctx ends, and then stops everything. It
// returns an error if the management cluster lacks the CRDs. A Source runs once.
func (s *Source) Run(ctx context.Context) error {
	defer s.stop()
	if err := s.awaitCRDs(ctx); err != nil || ctx.Err() != nil {
		return err
	}
	s.management.start(ctx)
	defer s.management.stop()
	s.awaitManagement(ctx)
	s.identify(ctx)
	if ctx.Err() == nil {
		s.link.Use(s.management.conn)
		s.group.Go(func() { s.probeManagement(ctx) })
	}
	s.awaitClusters(ctx)
	if ctx.Err() == nil {
		s.ready.Store(true)
		signal(s.changed)
	}
	s.logUnreadable(ctx)
	return nil
}

// stop ends all sessions and waits for them.
func (s *Source) stop() {
	s.mu.Lock()
	s.cancel()
	s.mu.Unlock()
	s.group.Wait()
}

// Changed is signalled when Input would return something new. The first signal
// comes when the management cluster has been read and each registered cluster has
// been read, or has a reason not to be, or the grace period is over.
func (s *Source) Changed() <-chan struct{} { return s.changed }

// Set adds a cluster, or replaces its configuration: what was read stays in use
// until everything has been read with the new one. If err is not nil, the cluster
// is registered but cannot be used; err says why, without times or secrets.
func (s *Source) Set(name, domain string, config *rest.Config, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.ctx.Err() != nil {
		return
	}
	m, direct := s.clusters[name].(*member)
	if !direct {
		m = newMember(s.seed(name), s.sessionSettings(), s.options.Log, s.notify)
		s.replace(name, m)
	}
	switch {
	case err != nil:
		cause := snapshot.CredentialInvalid
		if known := kube.Caused(nil); errors.As(err, &known) {
			cause = known.Cause()
		}
		m.setUnusable(domain, cause, snapshot.ReasonOf("", err).What)
	case config == nil:
		m.setUnusable(domain, snapshot.CredentialMissing, "it has no credential")
	default:
		m.connect(s.ctx, &s.group, domain, config)
	}
}

// SetRemote adds a cluster that its agent reads and reports to the Remote, and to which requests are sent by a transport; or says that a
// cluster is read that way from now on. What was read before stays until the agent has reported everything.
func (s *Source) SetRemote(name, domain string, transport http.RoundTripper) (*Remote, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if err := s.ctx.Err(); err != nil {
		return nil, err
	}
	r, remote := s.clusters[name].(*Remote)
	if !remote {
		var err error
		if r, err = newRemote(s.seed(name), s.sessionSettings(), transport, s.options.Log, s.notify); err != nil {
			return nil, err
		}
		s.replace(name, r)
		ctx, cancel := context.WithCancel(s.ctx)
		r.cancel = cancel
		s.group.Go(func() { r.run(ctx) })
	}
	r.setDomain(domain)
	return r, nil
}

// seed is what is known of a cluster, under the lock.
func (s *Source) seed(name string) *snapshot.Cluster {
	if c := s.clusters[name]; c != nil {
		known, _ := c.current()
		return known
	}
	return &snapshot.Cluster{Name: name}
}

// replace connects a cluster in another way, under the lock.
func (s *Source) replace(name string, by registered) {
	if c := s.clusters[name]; c != nil {
		c.stop()
	}
	s.clusters[name] = by
}

func (s *Source) sessionSettings() sessionSettings {
	return sessionSettings{
		scheme: s.scheme, plane: snapshot.Plane{Namespace: s.options.Namespace, ID: s.options.PlaneID},
		probeInterval: s.options.ProbeInterval, probeTimeout: s.options.ProbeTimeout, silence: s.options.Silence, bounds: s.options.Bounds,
		keep: statuses(s.options.Statuses),
	}
}

// Link is the way to a cluster for those who write there; "" is the management cluster, and one that was not set is nil.
func (s *Source) Link(name string) *mirror.Link {
	if name == "" {
		return &s.link
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if c := s.clusters[name]; c != nil {
		return c.writers()
	}
	return nil
}

// probeManagement says whether the management cluster can be written to, until ctx ends.
func (s *Source) probeManagement(ctx context.Context) {
	conn := s.management.conn
	pulse := newPulse(conn, s.options.ProbeInterval, s.options.ProbeTimeout)
	defer pulse.stop()
	for {
		switch pulse.wait(ctx, nil, nil) {
		case ended:
			return
		case answered:
			s.link.Resume(conn)
		}
		if pulse.lost() {
			s.link.Lose(pulse.err)
		}
	}
}

// Renewed says that the configuration of a cluster has another credential: a cluster that
// refused the last one is asked again at once.
func (s *Source) Renewed(name string) {
	s.mu.Lock()
	c := s.clusters[name]
	s.mu.Unlock()
	if c != nil {
		c.renewed()
	}
}

// SetCredential says which stored credential the last Set or Renewed was about; it is that of
// the snapshot.Cluster. Call it after them: what is said of a cluster must not be taken for
// what follows from a newer credential.
func (s *Source) SetCredential(name, fingerprint string) {
	s.mu.Lock()
	c := s.clusters[name]
	s.mu.Unlock()
	if c != nil {
		c.setCredential(fingerprint)
	}
}

// Remove removes a cluster.
func (s *Source) Remove(name string) {
	s.mu.Lock()
	c := s.clusters[name]
	delete(s.clusters, name)
	s.mu.Unlock()
	if c != nil {
		c.stop()
		s.notify()
	}
}

// SetFailures sets the writes that failed, which are part of the Input.
func (s *Source) SetFailures(failures []snapshot.Failure) {
	failures = sortedFailures(failures)
	s.mu.Lock()
	changed := !equality.Semantic.DeepEqual(s.failures, failures)
	if changed {
		s.failures = failures
	}
	s.mu.Unlock()
	if changed {
		s.notify()
	}
}

// notify signals Changed or, before the first Input, progress.
func (s *Source) notify() {
	s.input.dirty.Store(true)
	if s.ready.Load() {
		signal(s.changed)
		return
	}
	signal(s.progress)
}
