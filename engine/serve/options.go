package serve

import (
	"cmp"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"os"
	"time"

	"k8s.io/apimachinery/pkg/util/uuid"
	"k8s.io/client-go/rest"

	"github.com/meshctl/meshctl/engine/snapshot"
)

// DefaultMetricsBind is where metrics and health are served unless told
// otherwise: what they tell is for this machine only.
const DefaultMetricsBind = "127.0.0.1:9091"

// Options say what to serve, and how. Only Management is required.
type Options struct {
	// Management is how to reach the management cluster.
	Management *rest.Config
	// Namespace is the management plane's; snapshot.DefaultNamespace if empty.
	Namespace string
	// MetricsBind is the address for metrics and health; none if empty.
	MetricsBind string
	// RefuseIntersecting refuses policies that users' own objects intersect with.
	RefuseIntersecting bool
	// LeaderElect makes this process wait for the Lease before it works.
	LeaderElect bool
	// Log is where events go; slog.Default() if nil.
	Log *slog.Logger
	// UserAgent is shown to registered clusters; meshctl if empty.
	UserAgent string
	// Version is in the metrics and in the statuses of the registered clusters.
	Version string
	// OnListen, if set, is told the address that metrics are served at.
	OnListen func(net.Addr)

	// identity is this process among those that want the Lease.
	identity string
	// lease is how the Lease is held.
	lease leaseTimes
	// probeInterval is the pause between probes of a cluster; the Source's default
	// if zero.
	probeInterval time.Duration
}

// leaseTimes bound how long a Lease outlives its holder. A holder that cannot
// renew for as long as renew, and then fails to give the Lease back for as
// long again, stops before length is over, when others may take it.
type leaseTimes struct{ length, renew, retry time.Duration }

func (o Options) withDefaults() (Options, error) {
	if o.Management == nil {
		return o, errors.New("serve: no configuration for the management cluster was given")
	}
	o.Namespace = cmp.Or(o.Namespace, snapshot.DefaultNamespace)
	o.Log = cmp.Or(o.Log, slog.Default())
	o.UserAgent = cmp.Or(o.UserAgent, "meshctl")
	o.lease = cmp.Or(o.lease, leaseTimes{length: 20 * time.Second, renew: 8 * time.Second, retry: 2 * time.Second})
	if o.identity == "" {
		host, err := os.Hostname()
		if err != nil {
			return o, fmt.Errorf("serve: finding the name of this machine, which the Lease shows: %w", err)
		}
		o.identity = host + "_" + string(uuid.NewUUID())
	}
	return o, nil
}
