package serve

import (
	"context"
	"errors"
	"log/slog"
	"maps"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"k8s.io/client-go/rest"

	"github.com/meshctl/meshctl/engine/kube"
	"github.com/meshctl/meshctl/engine/snapshot"
)

// Runnable works beside the loop while this process leads, such as the issuer of
// certificates. It adds to the Input and writes what follows from the translation and is no
// part of the Output. One that fails or panics is started again after a pause; the
// translation goes on without it.
type Runnable struct {
	// Name is in the log and in metrics.
	Name string
	// Run works until ctx ends. It is called again if it returns before, with another LeaderContext.
	Run func(ctx context.Context, t LeaderContext) error
}

// LeaderContext is what a Runnable has from one start to the next. Its functions may be called from
// any goroutine, and do not block.
type LeaderContext struct {
	// Management reaches the management cluster. Writes wait until it is certain that this
	// process leads; so they do with Clusters.
	Management *rest.Config
	// Namespace and PlaneID are those of the management plane.
	Namespace, PlaneID string
	Log                *slog.Logger
	// Metrics are those of this process. What is registered is removed when Run returns.
	Metrics prometheus.Registerer
	// Changed is signalled at the start, after each translation, and when Clusters changes.
	// Signals that are not received in time are one.
	Changed <-chan struct{}
	// State is the latest translation; nil before the first.
	State func() *snapshot.State
	// Clusters are the connections to the registered clusters by name, without those that have no
	// usable credential. A configuration is another pointer only if the server or its CA is
	// another; a renewed token takes effect in the one that is in use.
	Clusters func() map[string]*rest.Config
	// SetRoots sets the roots in the Input. They stay until they are set again, also while
	// the Runnable is not running.
	SetRoots func([]*snapshot.VirtualMeshRoots)
	// SetLogging sets which proxies send their access log, in the Input; it stays as well.
	SetLogging func(*snapshot.Logging)
}

// runnables are the Runnables of one term of this process as the leader.
type runnables struct {
	list     []Runnable
	term     LeaderContext
	registry prometheus.Registerer
	restarts *prometheus.CounterVec

	mu       sync.Mutex
	clusters map[string]*rest.Config
	waiting  map[chan struct{}]bool
}

// newRunnables prepares the Runnables of a worker; nil if there are none. The methods may
// be called on nil.
func newRunnables(o Options, id string, w *worker) *runnables {
	if len(o.Runnables) == 0 {
		return nil
	}
	c := &runnables{
		list: o.Runnables, registry: w.metrics, clusters: map[string]*rest.Config{}, waiting: map[chan struct{}]bool{},
		restarts: prometheus.NewCounterVec(prometheus.CounterOpts{
			Namespace: "meshctl", Name: "companion_failures_total",
			Help: "Times that a part which works beside the translation failed and was started again.",
		}, []string{"runnable"}),
	}
	w.metrics.MustRegister(c.restarts)
	c.term = LeaderContext{
		Management: o.Management, Namespace: o.Namespace, PlaneID: id, Log: o.Log,
		State:    func() *snapshot.State { return w.loop.state.Load() },
		Clusters: c.connections, SetRoots: w.clusters.Source.SetRoots, SetLogging: w.clusters.Source.SetLogging,
	}
	return c
}

func (c *runnables) connections() map[string]*rest.Config {
	c.mu.Lock()
	defer c.mu.Unlock()
	return maps.Clone(c.clusters)
}

// set adds a cluster or replaces its configuration, which writes through the fence.
func (c *runnables) set(name string, config *rest.Config) {
	if c == nil {
		return
	}
	c.mu.Lock()
	c.clusters[name] = config
	c.mu.Unlock()
	c.notify()
}

func (c *runnables) remove(name string) {
	if c == nil {
		return
	}
	c.mu.Lock()
	delete(c.clusters, name)
	c.mu.Unlock()
	c.notify()
}

// notify tells all Runnables that something changed.
func (c *runnables) notify() {
	if c == nil {
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	for waiting := range c.waiting {
		select {
		case waiting <- struct{}{}:
		default:
		}
	}
}

// run runs all Runnables until ctx ends.
func (c *runnables) run(ctx context.Context) {
	if c == nil {
		return
	}
	var group sync.WaitGroup
	defer group.Wait()
	for _, runnable := range c.list {
		group.Go(func() { c.restart(ctx, runnable) })
	}
}

// Pauses before a Runnable is started again. One that worked for longer than runnableWell
// before it failed is started after the first pause.
const (
	runnableFirst = time.Second
	runnableLast  = time.Minute
	runnableWell  = 5 * time.Minute
)

// errEnded is why a Runnable is started again that returned without an error.
var errEnded = errors.New("it ended by itself")

// restart starts a Runnable again each time it ends.
func (c *runnables) restart(ctx context.Context, runnable Runnable) {
	log := c.term.Log.With("runnable", runnable.Name)
	for failures := 1; ; failures++ {
		began := time.Now()
		err := c.attempt(ctx, runnable, log)
		if ctx.Err() != nil {
			return
		}
		if err == nil {
			err = errEnded
		}
		if time.Since(began) > runnableWell {
			failures = 1
		}
		pause := kube.Backoff(runnableFirst, runnableLast, failures)
		c.restarts.WithLabelValues(runnable.Name).Inc()
		log.Error("a part of meshctl serve failed and is started again; everything else goes on", "pause", pause, "error", err)
		if !sleep(ctx, pause) {
			return
		}
	}
}

// attempt runs a Runnable once; a panic is an error.
func (c *runnables) attempt(ctx context.Context, runnable Runnable, log *slog.Logger) error {
	changed := make(chan struct{}, 1)
	changed <- struct{}{}
	c.mu.Lock()
	c.waiting[changed] = true
	c.mu.Unlock()
	registered := &registrations{Registerer: c.registry}
	ctx, cancel := context.WithCancel(ctx)
	defer func() {
		cancel()
		registered.undo()
		c.mu.Lock()
		delete(c.waiting, changed)
		c.mu.Unlock()
	}()
	term := c.term
	term.Changed, term.Log, term.Metrics = changed, log, registered
	var err error
	if broken := kube.Catch(func() { err = runnable.Run(ctx, term) }); broken != nil {
		return broken
	}
	return err
}

// registrations are what a Runnable has registered.
type registrations struct {
	prometheus.Registerer
	mu   sync.Mutex
	done []prometheus.Collector
}

// Register implements prometheus.Registerer.
func (r *registrations) Register(c prometheus.Collector) error {
	if err := r.Registerer.Register(c); err != nil {
		return err //nolint:wrapcheck // as the one it stands for
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.done = append(r.done, c)
	return nil
}

// MustRegister implements prometheus.Registerer.
func (r *registrations) MustRegister(all ...prometheus.Collector) {
	for _, c := range all {
		if err := r.Register(c); err != nil {
			panic(err)
		}
	}
}

func (r *registrations) undo() {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, c := range r.done {
		r.Unregister(c)
	}
}
