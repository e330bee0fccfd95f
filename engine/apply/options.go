package apply

import (
	"log/slog"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"k8s.io/client-go/rest"

	"github.com/meshctl/meshctl/engine/mirror"
	"github.com/meshctl/meshctl/engine/snapshot"
)

// Options configure a Sink. The zero value works.
type Options struct {
	// Namespace is that of the management plane: the value of the owner labels of
	// all objects that the sink writes and deletes. Default: snapshot.DefaultNamespace.
	Namespace string
	// PlaneID is the identity of the management plane. If it is empty, the namespace alone
	// says whose an object is.
	PlaneID string
	// Log receives one line a batch, and one for each new failure. Default: slog.Default().
	Log *slog.Logger
	// Registerer receives the metrics; nil: none are registered.
	Registerer prometheus.Registerer
	// Workers is the number of parallel requests to one cluster. Default: 8, which
	// keep one API server busy; its priority and fairness limits them.
	Workers int
	// Timeout bounds one write. Default: 35 s, a little more than the longest timeout
	// of an admission webhook.
	Timeout time.Duration
	// StatusPatience is how long statuses wait until the objects of the same change
	// are written. Default: 100 ms; local clusters need less.
	StatusPatience time.Duration
	// Settle is how long an object that guards stays that a user's edit withdraws, if that
	// lets in everybody: an AccessPolicy is renamed by deleting one and creating another.
	// Default: 5 s.
	Settle time.Duration
	// Pace is how fast control planes pass changes on to their proxies.
	Pace Pace
	// Widen is that of the renderer of a kind (render.Renderer); nil widens nothing.
	Widen func(kind snapshot.Kind, before, after any) any
	// Keep: nothing is deleted, whatever is wanted.
	Keep bool
	// Guard makes of the configuration of a cluster the one to write with; nil writes with the same.
	Guard func(*rest.Config) *rest.Config
	// Witness is told what stands in a cluster; nil, or one that returns nil, tells nobody.
	Witness func(cluster string) Witness
	// ExplainRepairs: what somebody else did to an object is read before it is put back; see Change.Reverted.
	ExplainRepairs bool
	// OnChange, if set, is called with each ChangeSet, from several goroutines.
	OnChange func(ChangeSet)
}

// Witness is told what stands in one cluster, as it was written or found. Its methods are called with a lock held, one after the other,
// and must not block.
type Witness interface {
	// Stands says that an object is as a document has it, which is computed when it is asked for; nil if it is gone.
	Stands(of mirror.ID, document func() ([]byte, error))
	// Settled says that there is nothing left to write: what was said is all that stands.
	Settled()
}

// plane is whose objects are written and deleted.
func (o *Options) plane() snapshot.Plane {
	return snapshot.Plane{Namespace: o.Namespace, ID: o.PlaneID}
}

const (
	defaultWorkers        = 8
	defaultTimeout        = 35 * time.Second
	defaultStatusPatience = 100 * time.Millisecond
	defaultSettle         = 5 * time.Second
)

func (o Options) withDefaults() Options {
	if o.Namespace == "" {
		o.Namespace = snapshot.DefaultNamespace
	}
	if o.Log == nil {
		o.Log = slog.Default()
	}
	if o.Workers <= 0 {
		o.Workers = defaultWorkers
	}
	if o.Timeout <= 0 {
		o.Timeout = defaultTimeout
	}
	if o.StatusPatience <= 0 {
		o.StatusPatience = defaultStatusPatience
	}
	if o.Settle <= 0 {
		o.Settle = defaultSettle
	}
	o.Pace = o.Pace.withDefaults()
	if o.Widen == nil {
		o.Widen = func(snapshot.Kind, any, any) any { return nil }
	}
	if o.Guard == nil {
		o.Guard = func(config *rest.Config) *rest.Config { return config }
	}
	if o.OnChange == nil {
		o.OnChange = func(ChangeSet) {}
	}
	return o
}
