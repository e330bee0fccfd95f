package demo

import (
	"context"
	"fmt"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/meshctl/meshctl/demo/app"
	"github.com/meshctl/meshctl/demo/kube"
	"github.com/meshctl/meshctl/demo/local"
	"github.com/meshctl/meshctl/demo/proc"
	"github.com/meshctl/meshctl/demo/proxies"
)

// Names of runtimes.
const (
	// RuntimeLocal runs clusters as plain processes on this machine.
	RuntimeLocal = "local"
	// RuntimeKind runs them as containers, with kind.
	RuntimeKind = "kind"
)

// Runtimes are the names of all runtimes.
func Runtimes() []string { return []string{RuntimeLocal, RuntimeKind} }

// ErrNoCluster is returned by Runtime.Open if there is no such cluster.
var ErrNoCluster = local.ErrNoCluster

// Runtime creates the clusters of a demo, and runs the management plane. Another one
// needs an implementation and a line in newRuntime.
type Runtime interface {
	// Prepare builds or downloads what all clusters need, which may take minutes
	// the first time. It reports its progress.
	Prepare(ctx context.Context, report func(string)) error
	// Create creates a cluster with Istio, its sidecar injector, and Services of gateways with
	// addresses. index, from 1, is different for each cluster of a demo. On error
	// nothing of the cluster runs.
	Create(ctx context.Context, name string, index int, report func(string)) (Cluster, error)
	// StartProxies starts the gateways and the proxies of the pods of clusters, before the first
	// application is installed, if that is not the clusters' own business. It returns nil
	// and the reason if there are none.
	StartProxies(ctx context.Context, clusters []Cluster) (plane *proxies.Plane, why string, err error)
	// Adapt changes the objects of the application for the clusters.
	Adapt(objects []*unstructured.Unstructured, cluster string) error
	// Open opens a cluster that Create created, completely or not, in this
	// command or an earlier one.
	Open(name string) (Cluster, error)
	// Versions are those of the components of the clusters.
	Versions(clusters []Cluster) (map[string]string, error)

	// manage are the steps that register the clusters, run the management plane, with an agent for
	// each cluster, apply the VirtualMesh and start the application.
	manage(u *up) []step
	// revive restarts what ended of these and of the proxies.
	revive(ctx context.Context, u *up) error
	// serveLog is the end of the log of the management plane.
	serveLog(ctx context.Context, s state) string
	// report completes a report on the demo.
	report(ctx context.Context, s state, r *Report)
	// plane sends requests as workloads.
	plane(s state) (dataPlane, error)
	// saveLogs saves the logs of what failed, where they would be lost.
	saveLogs(s state)
}

// Cluster is a cluster of a Runtime.
type Cluster interface {
	Name() string
	// Context is the name of its context in the kubeconfig.
	Context() string
	// Kubeconfig is the path of the administrator's kubeconfig; Context is its only one.
	Kubeconfig() string
	Client() (*kube.Client, error)
	// Revive starts what does not run of the cluster, and returns the names.
	Revive(ctx context.Context) ([]string, error)
	// Stop stops the cluster. Its data may stay.
	Stop(ctx context.Context) error
}

// dataPlane sends requests as workloads.
type dataPlane interface {
	Pods(ctx context.Context) ([]proxies.Pod, error)
	Send(ctx context.Context, from proxies.Pod, call app.Call, report func([]app.Outcome)) error
	Break(ctx context.Context, workload app.Identity, fault proxies.Fault) error
}

// newRuntime returns the runtime of opts. Guard watches its processes.
func newRuntime(opts Options, guard *proc.Guard) (Runtime, error) {
	switch opts.Runtime {
	case RuntimeLocal:
		return &localRuntime{dir: opts.Dir, meshctl: opts.Meshctl, guard: guard, terminal: opts.Terminal, mode: opts.Proxies}, nil
	case RuntimeKind:
		return newKindRuntime(opts)
	default:
		return nil, fmt.Errorf("demo: unknown runtime %q; want one of %s", opts.Runtime, strings.Join(Runtimes(), ", "))
	}
}
