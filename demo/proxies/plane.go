package proxies

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"github.com/meshctl/meshctl/demo/files"
	"github.com/meshctl/meshctl/demo/kube"
	"github.com/meshctl/meshctl/demo/local"
	"github.com/meshctl/meshctl/demo/proc"
)

// Cluster is a cluster whose pods get proxies.
type Cluster struct {
	Name string `json:"name"`
	// Index is that of the network of its pods, 10.INDEX.0.0/16.
	Index int `json:"index"`
	// Kubeconfig is the path of an administrator's kubeconfig.
	Kubeconfig string `json:"kubeconfig"`
	// Istiod is the address of istiod's port for proxies with TLS.
	Istiod string `json:"istiod"`
	// Kubelet is how the API server of the cluster reaches the pods.
	Kubelet local.KubeletServer `json:"kubelet"`
	// Programs run in the network of the cluster.
	Programs []Program `json:"programs,omitempty"`
}

// Program is a process that runs as the pods of a namespace with some labels: at their
// address, so that proxies reach it at its Service, and with their source addresses. It is
// started again whenever it ends, and has no proxy.
type Program struct {
	Namespace string            `json:"namespace"`
	Labels    map[string]string `json:"labels"`
	// Path is that of the executable.
	Path string   `json:"path"`
	Args []string `json:"args"`
	// Hosts are addresses of the loopback interface of this machine that it reaches,
	// IP:PORT. It reaches no others there.
	Hosts []string `json:"hosts"`
}

// configuration is the file that the process reads.
type configuration struct {
	Envoy       string    `json:"envoy"`
	Bootstrap   string    `json:"bootstrap"`
	Application string    `json:"application"`
	Clusters    []Cluster `json:"clusters"`
}

// Files in the folder of a Plane.
const (
	configurationFile = "dataplane.json"
	controlSocket     = "control.sock"
	logFile           = "logs/kubelet.log"
)

// processName is the name of the process in reports.
const processName = "proxies"

// Plane is the data plane of some clusters: their proxies and applications.
type Plane struct {
	dir     string
	process proc.Process
}

// Start starts a data plane with its files in a folder. Pods get their proxies from
// then on; Kubernetes reports them as ready when they are. meshctl is the path of the
// binary whose role is their application. Guard ends the process if
// the caller dies.
func Start(ctx context.Context, guard *proc.Guard, dir string, binaries Binaries, meshctl string, clusters []Cluster) (*Plane, error) {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, fmt.Errorf("proxies: %w", err)
	}
	data, err := json.MarshalIndent(configuration{binaries.Envoy, binaries.bootstrap(), meshctl, clusters}, "", "  ")
	if err != nil {
		return nil, fmt.Errorf("proxies: %w", err)
	}
	if err := files.Write(filepath.Join(dir, configurationFile), data); err != nil {
		return nil, err
	}
	spec := proc.Spec{
		Name: processName, Path: binaries.Dataplane, Args: []string{"init", "kubelet", configurationFile},
		Dir: dir, Log: filepath.Join(dir, logFile),
	}
	return restart(ctx, guard, spec)
}

// restart starts the process of a Plane and waits until it answers.
func restart(ctx context.Context, guard *proc.Guard, spec proc.Spec) (*Plane, error) {
	process, err := proc.Start(guard, spec)
	if err != nil {
		return nil, err
	}
	p := &Plane{dir: spec.Dir, process: process}
	err = kube.Until(ctx, "waiting for the proxies' kubelet", func(ctx context.Context) error {
		_, err := p.Pods(ctx)
		if err != nil && !process.Alive() {
			return kube.Final(fmt.Errorf("it exited; the last lines of %s:\n%s", process.Log, process.Tail(8)))
		}
		return err
	})
	if err != nil {
		return nil, errors.Join(err, process.Kill(context.WithoutCancel(ctx)))
	}
	return p, nil
}

// Open returns the data plane whose process was started earlier, in this command or
// another one.
func Open(process proc.Process) *Plane { return &Plane{dir: process.Dir, process: process} }

// Restart starts the process again, with all proxies.
func (p *Plane) Restart(ctx context.Context, guard *proc.Guard) error {
	if err := p.process.Kill(ctx); err != nil {
		return err
	}
	again, err := restart(ctx, guard, p.process.Spec)
	if err != nil {
		return err
	}
	p.process = again.process
	return nil
}

// Process is what runs all proxies.
func (p *Plane) Process() proc.Process { return p.process }

// Stop ends all proxies.
func (p *Plane) Stop(ctx context.Context) error { return p.process.Kill(ctx) }
