package issuer

import (
	"context"
	"log/slog"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"k8s.io/client-go/rest"

	"github.com/meshctl/meshctl/engine/snapshot"
)

// signers is how many certificates are signed at a time: RSA takes CPU that others need.
const signers = 2

// Options configure an Issuer. Roots, State and Clusters are required.
type Options struct {
	Roots Roots
	// State is the latest translation; nil before the first.
	State func() *snapshot.State
	// Clusters are the connections to the registered clusters, by name. A configuration is
	// another pointer only if the cluster is reached in another way.
	Clusters func() map[string]*rest.Config
	// Log receives the log; slog.Default() if nil.
	Log *slog.Logger
	// Metrics may be nil.
	Metrics prometheus.Registerer
	// Now is the clock; time.Now if nil.
	Now func() time.Time
}

// Issuer answers the CertificateRequests of all clusters. It runs once.
type Issuer struct {
	Options
	metrics *metrics
	// turns are taken to sign.
	turns   chan struct{}
	workers map[string]*worker
	group   sync.WaitGroup
}

// New prepares an Issuer. It does no I/O.
func New(o Options) *Issuer {
	if o.Log == nil {
		o.Log = slog.Default()
	}
	if o.Now == nil {
		o.Now = time.Now
	}
	return &Issuer{Options: o, metrics: newMetrics(o.Metrics), turns: make(chan struct{}, signers), workers: map[string]*worker{}}
}

// Run answers requests until ctx ends. Changed is signalled when State or Clusters has
// something new.
func (i *Issuer) Run(ctx context.Context, changed <-chan struct{}) {
	defer i.group.Wait()
	for {
		select {
		case <-ctx.Done():
			return
		case <-changed:
			if state := i.State(); state != nil {
				i.assign(ctx, state)
			}
		}
	}
}

// assign tells each worker what is to be done.
func (i *Issuer) assign(ctx context.Context, state *snapshot.State) {
	wanted, configs := askedFor(state.Plan), i.Clusters()
	known := map[string]bool{}
	for _, c := range state.Input.Clusters {
		known[c.Name] = true
		jobs := jobsOf(c, wanted)
		w := i.workers[c.Name]
		if w == nil {
			if len(jobs) == 0 {
				continue
			}
			w = i.hire(ctx, c.Name)
		}
		w.set(jobs, configs[c.Name])
	}
	for name, w := range i.workers {
		if !known[name] {
			w.stop()
			delete(i.workers, name)
		}
	}
}

// hire starts the worker of a cluster.
func (i *Issuer) hire(ctx context.Context, cluster string) *worker {
	ctx, stop := context.WithCancel(ctx)
	w := &worker{
		Issuer: i, log: i.Log.With("cluster", cluster), stop: stop, wake: make(chan struct{}, 1), answers: map[snapshot.Ref]given{},
	}
	i.workers[cluster] = w
	i.group.Go(func() { defer stop(); w.run(ctx) })
	return w
}
