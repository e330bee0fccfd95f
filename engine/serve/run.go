package serve

import (
	"cmp"
	"context"
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"golang.org/x/sync/errgroup"
	"k8s.io/client-go/rest"

	"github.com/meshctl/meshctl/engine/apply"
	"github.com/meshctl/meshctl/engine/cluster"
	"github.com/meshctl/meshctl/engine/snapshot"
	"github.com/meshctl/meshctl/engine/watch"
)

// stopTimeout bounds how long the parts may take to end once they are told to.
const stopTimeout = 2500 * time.Millisecond

// Run serves until ctx ends, and then returns nil. It returns an error if it
// cannot begin, or must not go on.
func Run(ctx context.Context, o Options) error {
	o, err := o.withDefaults()
	if err != nil {
		return err
	}
	if err := watch.CheckCRDs(ctx, o.Management); err != nil {
		return err
	}
	var (
		leader   leadership
		working  atomic.Pointer[plane]
		registry = prometheus.NewRegistry()
		metrics  = newMetrics(registry, cmp.Or(o.Version, "unknown"))
	)
	h := &health{
		registry: registry, leader: &leader,
		loop:    func() *loop { return working.Load().getLoop() },
		waiting: func() string { return working.Load().waiting() },
	}
	registry.MustRegister(newStateCollector(h.state, func() []cluster.CredentialStatus { return working.Load().credentials() }, leader.leading.Load))
	if o.MetricsBind != "" {
		server, err := serveHTTP(o.MetricsBind, h.handler(), o.Log)
		if err != nil {
			return err
		}
		defer server.close()
		o.Log.Info("metrics and health", "address", "http://"+server.listener.Addr().String())
		if o.OnListen != nil {
			o.OnListen(server.listener.Addr())
		}
	}
	return lead(ctx, o, &leader, func(ctx context.Context) error {
		p, err := newPlane(o, registry, metrics)
		if err != nil {
			return err
		}
		working.Store(p)
		return p.run(ctx)
	})
}

// plane is all that works while this process leads.
type plane struct {
	options  Options
	registry *cluster.Registry
	renewer  *cluster.Renewer
	source   *watch.Source
	sink     *apply.Sink
	loop     *loop
	recorder *recorder
}

// The following may be called before there is a plane.

func (p *plane) getLoop() *loop {
	if p == nil {
		return nil
	}
	return p.loop
}

func (p *plane) credentials() []cluster.CredentialStatus {
	if p == nil {
		return nil
	}
	return p.renewer.Status()
}

// waiting says what the first translation waits for.
func (p *plane) waiting() string {
	if p == nil {
		return "starting"
	}
	return cmp.Or(p.source.Waiting(), "the first translation is under way")
}

// newPlane wires the parts. It dials nobody.
func newPlane(o Options, registerer prometheus.Registerer, m *metrics) (*plane, error) {
	p := &plane{options: o}
	var err error
	if p.registry, err = cluster.NewRegistry(o.Management, o.Namespace, o.UserAgent, o.Log); err != nil {
		return nil, err
	}
	if p.renewer, err = cluster.NewRenewer(p.registry, o.Management, nil, o.Log); err != nil {
		return nil, err
	}
	p.source, err = watch.New(watch.Options{
		Management: o.Management, Namespace: o.Namespace, Log: o.Log, Probe: o.probe, Told: p.registry.Synced(),
		RefuseIntersecting: o.RefuseIntersecting, Version: o.Version,
	})
	if err != nil {
		return nil, err
	}
	why := &cause{}
	if p.recorder, err = newRecorder(o, func() *snapshot.State { return p.loop.state.Load() }); err != nil {
		return nil, err
	}
	p.sink = apply.New(apply.Options{
		Namespace: o.Namespace, Log: why.logger(o.Log), Registerer: registerer, OnChange: p.recorder.record,
	})
	p.loop = newLoop(p.source, p.sink, m, why, o.Log)
	return p, nil
}

// run works until ctx ends or a part fails.
func (p *plane) run(ctx context.Context) error {
	p.sink.Set("", p.options.Management)
	group, ctx := errgroup.WithContext(ctx)
	group.Go(func() error { return p.source.Run(ctx) })
	group.Go(func() error {
		return p.registry.Run(ctx, &members{source: p.source, sink: p.sink, configs: map[string]*rest.Config{}})
	})
	group.Go(func() error { return p.renewer.Run(ctx) })
	group.Go(func() error { p.sink.Run(ctx); return nil })
	group.Go(func() error { p.loop.run(ctx); return nil })
	group.Go(func() error { p.failures(ctx); return nil })
	group.Go(func() error { p.recorder.run(ctx); return nil })

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
		p.options.Log.Warn("something does not end; going without it")
		return nil
	}
}

// failures tells the Source what the Sink cannot write.
func (p *plane) failures(ctx context.Context) {
	for {
		select {
		case <-ctx.Done():
			return
		case <-p.sink.FailuresChanged():
			p.source.SetFailures(p.sink.Failures())
		}
	}
}

// members hands the registered clusters to the Source and to the Sink.
type members struct {
	source  *watch.Source
	sink    *apply.Sink
	configs map[string]*rest.Config
}

// Set implements cluster.Handler.
func (m *members) Set(member cluster.Member) {
	m.source.Set(member.Name, member.Domain, member.Config, member.Err)
	config := member.Config
	if member.Err != nil {
		config = nil
	}
	if config == m.configs[member.Name] {
		return
	}
	m.configs[member.Name] = config
	if config == nil {
		m.sink.Remove(member.Name)
		return
	}
	m.sink.Set(member.Name, config)
}

// Remove implements cluster.Handler.
func (m *members) Remove(name string) {
	delete(m.configs, name)
	m.source.Remove(name)
	m.sink.Remove(name)
}
