package serve

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	dto "github.com/prometheus/client_model/go"
	"golang.org/x/sync/errgroup"

	"github.com/meshctl/meshctl/engine"
	"github.com/meshctl/meshctl/engine/apply"
	"github.com/meshctl/meshctl/engine/cluster"
	"github.com/meshctl/meshctl/engine/relay/hub"
	"github.com/meshctl/meshctl/engine/snapshot"
	"github.com/meshctl/meshctl/engine/watch"
)

// stopTimeout bounds how long the parts may take to stop.
const stopTimeout = 2500 * time.Millisecond

// Run serves until ctx ends, and then returns nil. It returns an error if it
// cannot start or must not continue; it waits for a management cluster that is away.
func Run(ctx context.Context, o Options) error {
	o, err := o.withDefaults()
	if err != nil {
		return err
	}
	if err := watch.CheckCRDs(ctx, o.Management); err != nil {
		return err
	}
	var (
		leader     leadership
		current    atomic.Pointer[worker]
		collectors = prometheus.NewRegistry()
		metrics    = newMetrics(collectors, cmp.Or(o.Version, "unknown"))
	)
	h := &health{
		pages: o.Pages, guarded: o.Guarded,
		metrics: func() prometheus.Gatherer {
			return append(prometheus.Gatherers{collectors}, current.Load().gatherers()...)
		},
		leader:  &leader,
		loop:    func() *loop { return current.Load().getLoop() },
		waiting: func() string { return current.Load().waiting() },
		unread:  func() string { return current.Load().unread() },
	}
	collectors.MustRegister(newStateCollector(h.state,
		func() []cluster.CredentialStatus { return current.Load().credentials() },
		func() []watch.Freshness { return current.Load().freshness() }, leader.leading.Load))
	collectors.MustRegister(newAnswers(h.state))
	stop, err := h.listen(ctx, o)
	if err != nil {
		return err
	}
	defer stop()
	door, err := openDoor(ctx, o, &leader)
	if err != nil {
		return err
	}
	door.register(collectors)
	if o.Export != nil {
		exporting, end := context.WithCancel(ctx)
		var export sync.WaitGroup
		export.Go(func() {
			o.Export(exporting, o.identity, prometheus.GathererFunc(func() ([]*dto.MetricFamily, error) { return h.metrics().Gather() }))
		})
		defer export.Wait()
		defer end()
	}
	return lead(ctx, o, &leader, func(ctx context.Context, f *fence) error {
		id, err := planeID(ctx, o, f)
		if err != nil || ctx.Err() != nil {
			return err
		}
		w, err := newWorker(o, id, f, metrics)
		if err != nil {
			return err
		}
		if err := w.relay(ctx, door, id, leader.held()); err != nil {
			return err
		}
		current.Store(w)
		defer current.Store(nil)
		return w.run(ctx)
	})
}

// worker is what runs for one term of this process as the leader. Nothing of it is used again.
type worker struct {
	options Options
	// metrics are those of the term.
	metrics  *prometheus.Registry
	clusters *Clusters
	renewer  *cluster.Renewer
	sink     *apply.Sink
	loop     *loop
	recorder *recorder
	states   *stateRecorder
	timeline *timeline
	// runnables work beside the loop; nil if there are none.
	runnables *runnables
	// verifier compares what agents report.
	verifier *verifier
	// leaver follows clusters that leave.
	leaver *leaver
	// agents serves those that dial, until ctx ends; it does nothing where there is no relay.
	agents func(ctx context.Context)
}

// The following methods may be called on nil, while this process does not lead.

func (w *worker) gatherers() prometheus.Gatherers {
	if w == nil {
		return nil
	}
	return prometheus.Gatherers{w.metrics}
}

func (w *worker) getLoop() *loop {
	if w == nil {
		return nil
	}
	return w.loop
}

func (w *worker) credentials() []cluster.CredentialStatus {
	if w == nil {
		return nil
	}
	return w.renewer.Status()
}

func (w *worker) freshness() []watch.Freshness {
	if w == nil {
		return nil
	}
	return w.clusters.Source.Freshness()
}

// waiting says what the first translation waits for.
func (w *worker) waiting() string {
	if w == nil {
		return "starting"
	}
	return cmp.Or(w.clusters.Source.Waiting(), "the first translation has not finished")
}

// unread says why the management cluster cannot be read; empty if it can.
func (w *worker) unread() string {
	if w == nil {
		return ""
	}
	return w.clusters.Source.ManagementReason()
}

// newWorker connects the parts of a management plane with an identity. It does no I/O. All that they write goes through the
// fence, if there is one.
func newWorker(o Options, id string, f *fence, m *metrics) (*worker, error) {
	o.Management = f.guard(o.Management)
	w := &worker{options: o, metrics: prometheus.NewRegistry(), agents: func(context.Context) {}}
	why := &cause{}
	var err error
	if w.recorder, err = newRecorder(o, func() *snapshot.State { return w.loop.state.Load() }); err != nil {
		return nil, err
	}
	w.states = newStateRecorder(w.recorder)
	if w.timeline, err = newTimeline(o, w); err != nil {
		return nil, err
	}
	w.sink = apply.New(apply.Options{
		Widen:     engine.Widen,
		Namespace: o.Namespace, PlaneID: id, Log: why.logger(o.Log), Registerer: w.metrics, Guard: f.guard,
		OnChange: func(set apply.ChangeSet) { w.recorder.record(set); w.timeline.record(set) }, ExplainRepairs: true,
		Witness: func(cluster string) apply.Witness { return w.clusters.witness(cluster) },
	})
	if w.clusters, err = NewClusters(o.clusters(id, w.sink, f)); err != nil {
		return nil, err
	}
	if w.renewer, err = cluster.NewRenewer(w.clusters.registry, cluster.RenewerOptions{Management: o.Management, Guard: f.guard, Log: o.Log}); err != nil {
		return nil, err
	}
	w.loop = newLoop(w.clusters.Source, w.sink, m, why, o.Log)
	w.runnables = newRunnables(o, id, w)
	w.verifier = &verifier{state: func() *snapshot.State { return w.loop.state.Load() }, verify: w.verify, wake: make(chan struct{}, 1)}
	w.leaver = newLeaver(w.loop.state.Load, w.clusters.Source.Link, func() *hub.Hub { return w.clusters.hub })
	w.clusters.runnables = w.runnables
	w.loop.translated = func() {
		w.runnables.notify()
		w.verifier.notify()
		w.timeline.notify()
		w.leaver.notify()
		w.states.notify()
	}
	if w.loop.home, err = newHome(o.Management, o.Namespace); err != nil {
		return nil, err
	}
	return w, nil
}

// relay lets agents come in for a term of this process as the leader.
func (w *worker) relay(ctx context.Context, d *door, id string, term hub.Term) error {
	if d == nil {
		return nil
	}
	agents, config, err := w.options.Relay.Identify(ctx, w.options.Management, w.options.Namespace, id)
	if err != nil {
		return fmt.Errorf("serve: agents: %w", err)
	}
	h := hub.New(hub.Options{Agents: agents, Plane: id, Term: term, Version: w.options.Version, Log: w.options.Log, Readings: w.options.Relay.Readings})
	w.clusters.hub = h
	w.metrics.MustRegister(h.Collector())
	w.agents = func(ctx context.Context) {
		var group sync.WaitGroup
		group.Go(func() { h.Run(ctx) })
		group.Go(func() { d.enter(ctx, h, config) })
		group.Wait()
	}
	return nil
}

// verify compares what is known of a cluster, if that is reached through its agent.
func (w *worker) verify(ctx context.Context, cluster, request string) {
	if h := w.clusters.hub; h != nil {
		h.Verify(ctx, cluster, request)
	}
}

// clusters returns the options to connect clusters for a management plane with an identity; sink is nil to write nothing, and f if
// there is no fence.
func (o Options) clusters(id string, sink *apply.Sink, f *fence) ClusterOptions {
	return ClusterOptions{
		Options: watch.Options{
			Management: o.Management, Namespace: o.Namespace, PlaneID: id, Log: o.Log, ProbeInterval: o.probeInterval,
			RefuseIntersecting: o.RefuseIntersecting, Version: o.Version,
		},
		UserAgent: o.UserAgent, Sink: sink, fence: f,
	}
}

// run runs all parts until ctx ends or a part fails.
func (w *worker) run(ctx context.Context) error {
	w.loop.home.begin(ctx)
	group, ctx := errgroup.WithContext(ctx)
	group.Go(func() error { return w.clusters.Run(ctx) })
	group.Go(func() error { return w.renewer.Run(ctx) })
	group.Go(func() error { w.loop.run(ctx); return nil })
	group.Go(func() error { w.reportFailures(ctx); return nil })
	group.Go(func() error { w.recorder.run(ctx); return nil })
	group.Go(func() error { w.timeline.run(ctx); return nil })
	group.Go(func() error { w.states.run(ctx); return nil })
	group.Go(func() error { w.runnables.run(ctx); return nil })
	group.Go(func() error { w.agents(ctx); return nil })
	group.Go(func() error { w.verifier.run(ctx); return nil })
	group.Go(func() error { w.leaver.run(ctx); return nil })

	ended := make(chan error, 1)
	go func() { ended <- group.Wait() }()
	select {
	case err := <-ended:
		return err
	case <-ctx.Done():
	}
	select {
	case err := <-ended:
		return err
	case <-time.After(stopTimeout):
		w.options.Log.Warn("some parts did not stop in time", "timeout", stopTimeout)
		return nil
	}
}

// reportFailures passes the writes that failed, and what is wrong with the credentials, to
// the Source, as a part of the next Input.
func (w *worker) reportFailures(ctx context.Context) {
	for {
		select {
		case <-ctx.Done():
			return
		case <-w.sink.FailuresChanged():
		case <-w.clusters.refusedChanged:
		case <-w.renewer.Changed():
		case <-w.leaver.changed:
		}
		w.clusters.setFailures(slices.Concat(w.sink.Failures(), w.notRenewed(), w.leaver.failures()))
	}
}

// notRenewed are the credentials that cannot be renewed.
func (w *worker) notRenewed() []snapshot.Failure {
	var out []snapshot.Failure
	for _, credential := range w.renewer.Failing() {
		out = append(out, w.clusters.failure(credential.Cluster, snapshot.CredentialNotRenewed, credential.Err))
	}
	return out
}
