package watch

import (
	"cmp"
	"context"
	"log/slog"
	"sync"
	"time"

	"k8s.io/client-go/rest"

	"github.com/meshctl/meshctl/engine/api/scheme"
	"github.com/meshctl/meshctl/engine/kube"
	"github.com/meshctl/meshctl/engine/mirror"
	"github.com/meshctl/meshctl/engine/snapshot"
)

// LocalOptions configure a Local. Name, Plane and Config are required.
type LocalOptions struct {
	// Name is that of the cluster.
	Name string
	// Plane is the management plane whose objects are mirrored as ours.
	Plane snapshot.Plane
	// Config is how to reach the cluster.
	Config *rest.Config
	// Log receives changes of the state; slog.Default() if nil.
	Log *slog.Logger
	// ProbeInterval, ProbeTimeout and Silence are as in Options.
	ProbeInterval, ProbeTimeout, Silence time.Duration
}

// Local is one cluster that is read without a management cluster: what an agent reads of its own. Its methods may be called from any
// goroutine.
type Local struct {
	member  *member
	config  *rest.Config
	changed chan struct{}
}

// NewLocal prepares a Local. It does no I/O.
func NewLocal(o LocalOptions) *Local {
	l := &Local{config: o.Config, changed: make(chan struct{}, 1)}
	settings := sessionSettings{
		scheme: scheme.New(), plane: o.Plane, probeInterval: cmp.Or(o.ProbeInterval, 5*time.Second), probeTimeout: cmp.Or(o.ProbeTimeout, 3*time.Second),
		silence: cmp.Or(o.Silence, kube.DefaultSilence), keep: withoutStatuses,
	}
	l.member = newMember(&snapshot.Cluster{Name: o.Name}, settings, cmp.Or(o.Log, slog.Default()), func() { signal(l.changed) })
	return l
}

// Run reads the cluster until ctx ends.
func (l *Local) Run(ctx context.Context) {
	var group sync.WaitGroup
	l.member.connect(ctx, &group, "", l.config)
	<-ctx.Done()
	l.member.stop()
	group.Wait()
}

// Changed is signalled when Cluster would return something new.
func (l *Local) Changed() <-chan struct{} { return l.changed }

// Cluster is the cluster as it is now, the same pointer until something changes, and its objects that cannot be processed.
func (l *Local) Cluster() (*snapshot.Cluster, []snapshot.Failure) { return l.member.current() }

// Link is the way to the cluster for those who write there.
func (l *Local) Link() *mirror.Link { return &l.member.link }
