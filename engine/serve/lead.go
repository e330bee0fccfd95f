package serve

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
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
)

// ErrLeaseLost ends Run when another replica may have taken over.
var ErrLeaseLost = errors.New("the Lease was lost: the management cluster did not answer in time, or another replica took it; restart to wait for it again")

// releaseTimeout bounds how long releasing the Lease may delay the exit.
const releaseTimeout = 1500 * time.Millisecond

// leadership is the state of the leader election.
type leadership struct {
	// leading: this process is the leader. holder is the leader's identity, if known.
	leading atomic.Bool
	holder  atomic.Value
}

func (l *leadership) set(leading bool) { l.leading.Store(leading) }

func (l *leadership) identity() string {
	holder, _ := l.holder.Load().(string)
	return holder
}

// lead runs work while this process holds the Lease, and releases the Lease when
// work has returned.
func lead(ctx context.Context, o Options, state *leadership, work func(context.Context) error) error {
	if !o.LeaderElect {
		state.set(true)
		return work(ctx)
	}
	started := make(chan context.Context, 1)
	elector, err := newElector(o, state, started)
	if err != nil {
		return err
	}
	// The elector outlives ctx: the Lease is held until work has ended.
	electing, release := context.WithCancel(klog.NewContext(context.WithoutCancel(ctx), logr.FromSlogHandler(quiet{o.Log.Handler()})))
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		elector.Run(electing)
	}()
	defer func() {
		release()
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
	working, stop := context.WithCancel(ctx)
	defer stop()
	defer context.AfterFunc(leading, stop)()
	state.set(true)
	defer state.set(false)
	o.Log.Info("leading", "lease", o.Namespace+"/"+cluster.LeaseName, "identity", o.identity)
	err = work(working)
	if leading.Err() != nil && ctx.Err() == nil {
		return ErrLeaseLost
	}
	return err
}

func newElector(o Options, state *leadership, started chan<- context.Context) (*leaderelection.LeaderElector, error) {
	config := kube.Unlimited(o.Management)
	// A request that hangs must not use up the time to renew.
	config.Timeout = o.lease.renew / 2
	client, err := coordinationv1.NewForConfig(config)
	if err != nil {
		return nil, fmt.Errorf("lease %s/%s: %w", o.Namespace, cluster.LeaseName, err)
	}
	elector, err := leaderelection.NewLeaderElector(leaderelection.LeaderElectionConfig{
		Name: cluster.LeaseName,
		Lock: &resourcelock.LeaseLock{
			LeaseMeta:  metav1.ObjectMeta{Namespace: o.Namespace, Name: cluster.LeaseName},
			Client:     client,
			LockConfig: resourcelock.ResourceLockConfig{Identity: o.identity},
		},
		LeaseDuration: o.lease.length, RenewDeadline: o.lease.renew, RetryPeriod: o.lease.retry,
		ReleaseOnCancel: true,
		Callbacks: leaderelection.LeaderCallbacks{
			OnStartedLeading: func(ctx context.Context) { started <- ctx },
			OnStoppedLeading: func() {},
			OnNewLeader: func(identity string) {
				state.holder.Store(identity)
				if identity != o.identity {
					o.Log.Info("standing by", "lease", o.Namespace+"/"+cluster.LeaseName, "leader", identity)
				}
			},
		},
	})
	if err != nil {
		return nil, fmt.Errorf("lease %s/%s: %w", o.Namespace, cluster.LeaseName, err)
	}
	return elector, nil
}

// quiet drops what client-go logs at level info.
type quiet struct{ slog.Handler }

// Enabled implements slog.Handler.
func (q quiet) Enabled(ctx context.Context, level slog.Level) bool {
	return level >= slog.LevelWarn && q.Handler.Enabled(ctx, level)
}

// WithAttrs implements slog.Handler.
func (q quiet) WithAttrs(attrs []slog.Attr) slog.Handler { return quiet{q.Handler.WithAttrs(attrs)} }

// WithGroup implements slog.Handler.
func (q quiet) WithGroup(name string) slog.Handler { return quiet{q.Handler.WithGroup(name)} }
