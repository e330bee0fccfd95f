package serve

import (
	"context"
	"fmt"
	"sync/atomic"
	"time"

	"github.com/go-logr/logr"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	coordinationv1 "k8s.io/client-go/kubernetes/typed/coordination/v1"
	"k8s.io/client-go/tools/leaderelection"
	"k8s.io/client-go/tools/leaderelection/resourcelock"
	"k8s.io/klog/v2"

	"github.com/meshctl/meshctl/engine/cluster"
	"github.com/meshctl/meshctl/engine/kube"
	"github.com/meshctl/meshctl/engine/relay/hub"
)

// releaseTimeout bounds how long releasing the Lease may delay the exit.
const releaseTimeout = 1500 * time.Millisecond

// leadership is the state of the leader election.
type leadership struct {
	// leading: this process is the leader.
	leading atomic.Bool
	// other is the identity of the leader if that is another process; nil if there is
	// none, or it is not known.
	other atomic.Pointer[string]
	// term is the one that was held last; nil if none was.
	term atomic.Pointer[hub.Term]
	// away is why the Lease cannot be read or written; nil if it can.
	away atomic.Pointer[string]
}

// held is the term that is held; without an election, one that begins now.
func (l *leadership) held() hub.Term {
	if t := l.term.Load(); t != nil {
		return *t
	}
	return hub.Term{Since: time.Now()}
}

// work is what a leader does until ctx ends. Its writes go through the fence, if there is one.
type work func(ctx context.Context, f *fence) error

// lead runs work while this process holds the Lease, again for each term, until ctx ends or
// work fails. Who loses the Lease stands by: to end would be no safer, and what starts
// anew while the management cluster is away has forgotten what it knew.
func lead(ctx context.Context, o Options, state *leadership, do work) error {
	if !o.LeaderElect {
		state.leading.Store(true)
		return do(ctx, nil)
	}
	for ctx.Err() == nil {
		if err := term(ctx, o, state, do); err != nil {
			return err
		}
	}
	return nil
}

// term waits for the Lease, runs work while it is held, and releases it when work has
// returned. It returns nil if the Lease is lost.
func term(ctx context.Context, o Options, state *leadership, do work) error {
	started := make(chan context.Context, 1)
	working, stop := context.WithCancel(ctx)
	defer stop()
	held := &fence{length: o.lease.renew}
	// The fence would let nothing through from then on; what was sent is given up, too.
	overdue := time.AfterFunc(time.Hour, stop)
	overdue.Stop()
	defer overdue.Stop()
	elector, err := newElector(o, state, started, func(at time.Time) {
		held.renewed.Store(&at)
		overdue.Reset(time.Until(at.Add(held.length)))
	})
	if err != nil {
		return err
	}
	// The elector outlives ctx: the Lease is held until work has ended.
	electing, release := context.WithCancel(klog.NewContext(context.WithoutCancel(ctx), logr.Discard()))
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		elector.Run(electing)
	}()
	defer func() {
		held.renewed.Store(nil)
		release()
		if ctx.Err() == nil {
			<-ended // or it would release the Lease of the next term
			return
		}
		select {
		case <-ended:
		case <-time.After(releaseTimeout):
			o.Log.Warn("the Lease was not released in time; other replicas take it when it expires")
		}
	}()
	var leading context.Context
	select {
	case <-ctx.Done():
		return nil
	case leading = <-started:
	}
	defer context.AfterFunc(leading, stop)()
	state.leading.Store(true)
	defer state.leading.Store(false)
	o.Log.Info("leading", "lease", o.Namespace+"/"+cluster.LeaseName, "identity", o.identity)
	err = do(working, held)
	if working.Err() != nil && ctx.Err() == nil {
		o.Log.Warn("the Lease was lost: the management cluster did not answer in time, or another replica took it; nothing is written until it is held again",
			"lease", o.Namespace+"/"+cluster.LeaseName)
		return nil // what failed was being stopped
	}
	return err
}

// newElector prepares an elector that passes its context to started when it holds the
// Lease, and to renewed when each renewal that succeeded was sent.
func newElector(o Options, state *leadership, started chan<- context.Context, renewed func(time.Time)) (*leaderelection.LeaderElector, error) {
	config := kube.Unlimited(o.Management)
	// A request that hangs must not use up the time to renew.
	config.Timeout = o.lease.renew / 2
	client, err := coordinationv1.NewForConfig(config)
	if err != nil {
		return nil, fmt.Errorf("lease %s/%s: %w", o.Namespace, cluster.LeaseName, err)
	}
	elector, err := leaderelection.NewLeaderElector(leaderelection.LeaderElectionConfig{
		Name: cluster.LeaseName,
		Lock: &lock{
			Interface: &resourcelock.LeaseLock{
				LeaseMeta:  metav1.ObjectMeta{Namespace: o.Namespace, Name: cluster.LeaseName},
				Client:     client,
				LockConfig: resourcelock.ResourceLockConfig{Identity: o.identity},
			},
			state: state, renewed: renewed, host: config.Host,
			log: o.Log.With("lease", o.Namespace+"/"+cluster.LeaseName),
		},
		LeaseDuration: o.lease.length, RenewDeadline: o.lease.renew, RetryPeriod: o.lease.retry,
		ReleaseOnCancel: true,
		Callbacks: leaderelection.LeaderCallbacks{
			OnStartedLeading: func(ctx context.Context) { started <- ctx },
			OnStoppedLeading: func() {},
		},
	})
	if err != nil {
		return nil, fmt.Errorf("lease %s/%s: %w", o.Namespace, cluster.LeaseName, err)
	}
	return elector, nil
}
