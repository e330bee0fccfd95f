package demo

import (
	"context"
	"fmt"

	"github.com/meshctl/meshctl/demo/kube"
	"github.com/meshctl/meshctl/demo/local"
	"github.com/meshctl/meshctl/demo/proc"
)

// RuntimeLocal runs clusters as plain processes of this machine.
const RuntimeLocal = "local"

// ErrNoCluster is returned by Runtime.Open when there is no such cluster.
var ErrNoCluster = local.ErrNoCluster

// Runtime is where the clusters of a demo live. A new one (kind, say) is one
// more implementation and one more line in newRuntime.
type Runtime interface {
	// Prepare makes what all clusters need: binaries, images. It may take
	// minutes the first time and says how far it is.
	Prepare(ctx context.Context, say func(string)) error
	// Create brings up a cluster with Istio, a sidecar injector at work and
	// gateways with addresses. index, from 1, tells the clusters of a demo apart.
	// On error nothing of the cluster runs.
	Create(ctx context.Context, name string, index int, say func(string)) (Cluster, error)
	// Open finds a cluster that Create made or began to make, in this command or
	// an earlier one.
	Open(name string) (Cluster, error)
	// Versions says what the clusters are made of.
	Versions() (map[string]string, error)
}

// Cluster is a cluster of a Runtime.
type Cluster interface {
	Name() string
	// Kubeconfig is the path of the administrator's kubeconfig; its one context
	// has the cluster's name.
	Kubeconfig() string
	Client() (*kube.Client, error)
	// Processes are what runs of it on this machine, for people to look at.
	Processes() []proc.Process
	// Revive starts what has ended since, and returns the names of that.
	Revive(ctx context.Context) ([]string, error)
	// Stop ends the cluster. What it stored may stay.
	Stop(ctx context.Context) error
}

// newRuntime returns the runtime of that name. What it starts is watched by guard.
func newRuntime(opts Options, guard *proc.Guard) (Runtime, error) {
	switch opts.Runtime {
	case RuntimeLocal:
		return &localRuntime{dir: opts.Dir, guard: guard, terminal: opts.Terminal}, nil
	default:
		return nil, fmt.Errorf("demo: runtime %q is not known; the one there is: %s", opts.Runtime, RuntimeLocal)
	}
}
