package serve

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"os"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"k8s.io/apimachinery/pkg/util/uuid"
	"k8s.io/client-go/rest"

	"github.com/meshctl/meshctl/engine/snapshot"
)

// DefaultMetricsBind is the default address of metrics and health, which only
// this machine can reach.
const DefaultMetricsBind = "127.0.0.1:9091"

// DefaultDebugBind is the default address of the debug endpoints, which only this
// machine can reach.
const DefaultDebugBind = "127.0.0.1:9092"

// Options configure Run and ReadOnce. Only Management is required.
type Options struct {
	// Management is the client configuration of the management cluster.
	Management *rest.Config
	// Namespace is the management plane's; snapshot.DefaultNamespace if empty.
	Namespace string
	// MetricsBind is the address for metrics and health; none if empty.
	MetricsBind string
	// DebugBind is the address for the debug endpoints; none if empty. Each request
	// needs a token of the management cluster whose user may get the path.
	DebugBind string
	// RefuseIntersecting rejects policies that intersect with objects that users wrote in
	// the namespace of the service or in the root namespace of the mesh.
	RefuseIntersecting bool
	// LeaderElect makes this process wait for the Lease before it works.
	LeaderElect bool
	// LeaseDuration is how long a leader that does not renew the Lease keeps it; DefaultLeaseDuration
	// if zero. Longer survives longer stalls of the API server, and replaces a killed leader later.
	LeaseDuration time.Duration
	// Log receives the log; slog.Default() if nil.
	Log *slog.Logger
	// UserAgent is sent to registered clusters; meshctl if empty.
	UserAgent string
	// Version is in the metrics and in the statuses of the registered clusters.
	Version string
	// Runnables run while this process leads.
	Runnables []Runnable
	// Relay lets agents dial this process; nil lets none.
	Relay *Relay
	// Pages are served beside metrics and health, by path. They are for whoever reaches those, unless they look at who asks.
	Pages map[string]http.Handler
	// Guarded answer what is sent by POST, beside the debug endpoints, by path. Each request needs a token whose user may post to the path.
	Guarded map[string]http.Handler
	// Export, if set, sends metrics to somebody until its context ends, while this process leads or stands by. The identity is that of this
	// process in the Lease, and the metrics are those that are served.
	Export func(ctx context.Context, identity string, metrics prometheus.Gatherer)
	// OnListen, if set, is called with the addresses of metrics and health and of the
	// debug endpoints; nil for what is not served.
	OnListen func(metrics, debug net.Addr)

	// identity is the identity of this process in the Lease.
	identity string
	// lease are the durations of the leader election.
	lease leaseTimes
	// probeInterval is the pause between probes of a cluster; the Source's default
	// if zero.
	probeInterval time.Duration
}

// leaseTimes are the durations of the leader election. A holder that cannot renew the
// Lease for renew stops; another replica takes it when it has seen no renewal for length.
// Replicas look at the Lease after one to 2.2 times retry. Each measures durations with its
// own clock, so clocks need not agree.
type leaseTimes struct{ length, renew, retry time.Duration }

// DefaultLeaseDuration replaces a leader that is killed within five seconds: the duration,
// twice 2.2 times retry, and the time to read all clusters.
const DefaultLeaseDuration = 3500 * time.Millisecond

// leaseFor derives the other durations from the first.
func leaseFor(length time.Duration) leaseTimes {
	return leaseTimes{length: length, renew: length * 5 / 7, retry: length / 16}
}

func (o Options) withDefaults() (Options, error) {
	if o.Management == nil {
		return o, errors.New("serve: no configuration for the management cluster was given")
	}
	o.Namespace = cmp.Or(o.Namespace, snapshot.DefaultNamespace)
	o.Log = cmp.Or(o.Log, slog.Default())
	o.UserAgent = cmp.Or(o.UserAgent, "meshctl")
	o.lease = cmp.Or(o.lease, leaseFor(cmp.Or(o.LeaseDuration, DefaultLeaseDuration)))
	if o.identity == "" {
		host, err := os.Hostname()
		if err != nil {
			return o, fmt.Errorf("serve: reading the host name for the identity in the Lease: %w", err)
		}
		o.identity = host + "_" + string(uuid.NewUUID())
		if o.Relay != nil && o.Relay.Advertise != "" {
			o.identity += advertised + o.Relay.Advertise
		}
	}
	return o, nil
}
