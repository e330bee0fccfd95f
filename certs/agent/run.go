package agent

import (
	"context"
	"fmt"
	"os"
	"sync/atomic"
	"time"

	"github.com/go-logr/logr"
	"golang.org/x/sync/errgroup"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/rand"
	coordinationv1 "k8s.io/client-go/kubernetes/typed/coordination/v1"
	"k8s.io/client-go/tools/leaderelection"
	"k8s.io/client-go/tools/leaderelection/resourcelock"
	"k8s.io/klog/v2"

	"github.com/meshctl/meshctl/engine/kube"
)

// Times of the Lease: those of Kubernetes' own controllers. Every write names the version that it is based on, so that an
// agent that has lost the Lease without knowing it does no harm.
const (
	leaseDuration = 15 * time.Second
	renewDeadline = 10 * time.Second
	retryPeriod   = 2 * time.Second
)

// Run works until ctx ends, and then returns nil. It returns an error if it cannot start. Of several agents in a namespace
// one works, and the others stand by.
func Run(ctx context.Context, o Options) error {
	m := newMetrics()
	// A mistake in the options is found before the Lease is waited for.
	if _, err := newAgent(o, m); err != nil {
		return err
	}
	leader := &atomic.Bool{}
	if o.Collector != nil {
		if err := m.registry.Register(o.Collector); err != nil {
			return fmt.Errorf("metrics: %w", err)
		}
	}
	stop, err := listen(o, handler(m, leader, o.now(), o.Unready))
	if err != nil {
		return err
	}
	defer stop()
	for ctx.Err() == nil {
		if err := term(ctx, o, m, leader); err != nil {
			return err
		}
	}
	return nil
}

func (o Options) now() func() time.Time {
	if o.Now != nil {
		return o.Now
	}
	return time.Now
}

// term waits for the Lease, works while it is held, and releases it when the work has ended.
func term(ctx context.Context, o Options, m *metrics, leader *atomic.Bool) error {
	working, stop := context.WithCancel(ctx)
	defer stop()
	started := make(chan struct{})
	elector, err := newElector(o, func() { close(started) }, stop)
	if err != nil {
		return err
	}
	// The elector outlives ctx: the Lease is held until the work has ended.
	electing, release := context.WithCancel(klog.NewContext(context.WithoutCancel(ctx), logr.Discard()))
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		elector.Run(electing)
	}()
	defer func() { release(); <-ended }()
	select {
	case <-ctx.Done():
		return nil
	case <-started:
	}
	o.Log.Info("leading", "lease", o.Namespace+"/"+LeaseName)
	leader.Store(true)
	defer leader.Store(false)
	a, err := newAgent(o, m)
	if err != nil {
		return err
	}
	var group errgroup.Group
	group.Go(func() error { defer stop(); return a.run(working) })
	if o.Leading != nil {
		group.Go(func() error { defer stop(); return o.Leading(working) })
	}
	err = group.Wait()
	if ctx.Err() == nil {
		o.Log.Warn("the Lease was lost: the API server did not answer in time, or another agent took it", "lease", o.Namespace+"/"+LeaseName)
	}
	return err
}

func newElector(o Options, started, stopped func()) (*leaderelection.LeaderElector, error) {
	config := kube.Unlimited(o.Config)
	config.Timeout = renewDeadline / 2 // a request that hangs must not use up the time to renew
	client, err := coordinationv1.NewForConfig(config)
	if err != nil {
		return nil, fmt.Errorf("lease %s/%s: %w", o.Namespace, LeaseName, err)
	}
	identity := o.Identity
	if identity == "" {
		host, err := os.Hostname()
		if err != nil {
			return nil, fmt.Errorf("lease %s/%s: the name of this host is not known: %w", o.Namespace, LeaseName, err)
		}
		identity = host + "-" + rand.String(6)
	}
	elector, err := leaderelection.NewLeaderElector(leaderelection.LeaderElectionConfig{
		Name: LeaseName,
		Lock: &resourcelock.LeaseLock{
			LeaseMeta: metav1.ObjectMeta{Namespace: o.Namespace, Name: LeaseName}, Client: client,
			LockConfig: resourcelock.ResourceLockConfig{Identity: identity},
		},
		LeaseDuration: leaseDuration, RenewDeadline: renewDeadline, RetryPeriod: retryPeriod, ReleaseOnCancel: true,
		Callbacks: leaderelection.LeaderCallbacks{OnStartedLeading: func(context.Context) { started() }, OnStoppedLeading: stopped},
	})
	if err != nil {
		return nil, fmt.Errorf("lease %s/%s: %w", o.Namespace, LeaseName, err)
	}
	return elector, nil
}
