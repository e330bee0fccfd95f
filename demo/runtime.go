package demo

import (
	"context"
	"fmt"

	"github.com/meshctl/meshctl/demo/kube"
	"github.com/meshctl/meshctl/demo/local"
	"github.com/meshctl/meshctl/demo/proc"
	"github.com/meshctl/meshctl/demo/proxies"
)

// RuntimeLocal runs clusters as plain processes on this machine.
const RuntimeLocal = "local"

// ErrNoCluster is returned by Runtime.Open if there is no such cluster.
var ErrNoCluster = local.ErrNoCluster

// Runtime creates the clusters of a demo. Another one, such as kind, needs an
// implementation and a line in newRuntime.
type Runtime interface {
	// Prepare builds or downloads what all clusters need, which may take minutes
	// the first time. It reports its progress.
	Prepare(ctx context.Context, report func(string)) error
	// StartProxies starts the proxies of the pods of clusters, before the first
	// application is installed. It returns nil and the reason if there are none.
	StartProxies(ctx context.Context, clusters []Cluster) (plane *proxies.Plane, why string, err error)
	// Create creates a cluster with Istio, its sidecar injector, and gateways with
	// addresses. index, from 1, is different for each cluster of a demo. On error
	// nothing of the cluster runs.
	Create(ctx context.Context, name string, index int, report func(string)) (Cluster, error)
	// StartAgents starts the agents of registered clusters that do not run as pods there,
	// and what they need. On error, it returns those that run.
	StartAgents(ctx context.Context, clusters []Cluster, meshctl string) ([]proc.Process, error)
	// Open opens a cluster that Create created, completely or not, in this
	// command or an earlier one.
	Open(name string) (Cluster, error)
	// Versions are those of the components of the clusters.
	Versions() (map[string]string, error)
}

// Cluster is a cluster of a Runtime.
type Cluster interface {
	Name() string
	// Kubeconfig is the path of the administrator's kubeconfig; its one context
	// has the cluster's name.
	Kubeconfig() string
	Client() (*kube.Client, error)
	// Processes are those of the cluster on this machine, for Status.
	Processes() []proc.Process
	// Revive starts the processes that do not run, and returns their names.
	Revive(ctx context.Context) ([]string, error)
	// Stop stops the cluster. Its data may stay.
	Stop(ctx context.Context) error
}

// newRuntime returns the runtime of opts. Guard watches its processes.
func newRuntime(opts Options, guard *proc.Guard) (Runtime, error) {
	switch opts.Runtime {
	case RuntimeLocal:
		return &localRuntime{dir: opts.Dir, guard: guard, terminal: opts.Terminal, mode: opts.Proxies}, nil
	default:
		return nil, fmt.Errorf("demo: unknown runtime %q; the only one is %s", opts.Runtime, RuntimeLocal)
	}
}
