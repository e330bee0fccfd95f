package demo

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"time"

	"k8s.io/client-go/tools/clientcmd"

	"github.com/meshctl/meshctl/demo/proc"
)

// Report is the status of a demo as data; Write prints it.
type Report struct {
	Dir     string    `json:"dir"`
	Phase   Phase     `json:"phase"`
	Runtime string    `json:"runtime"`
	Created time.Time `json:"created"`
	// Versions by component: kubernetes, istio, envoy.
	Versions map[string]string `json:"versions,omitempty"`
	// Kubeconfig is set if the demo is running.
	Kubeconfig string          `json:"kubeconfig,omitempty"`
	Clusters   []ClusterReport `json:"clusters,omitempty"`
	// Proxies is the process that runs all proxies; NoProxies is why there are
	// none.
	Proxies   *ProcessReport `json:"proxies,omitempty"`
	NoProxies string         `json:"noProxies,omitempty"`
	// Agents are those of the clusters, with what they need.
	Agents []ProcessReport `json:"agents,omitempty"`
	// Serve is the management plane, Metrics the address it serves metrics on.
	Serve   ProcessReport `json:"serve"`
	Metrics string        `json:"metrics,omitempty"`
}

// ClusterReport is one cluster of a Report.
type ClusterReport struct {
	Name      string          `json:"name"`
	Server    string          `json:"server"`
	Processes []ProcessReport `json:"processes"`
}

// ProcessReport is one process of a Report, or a container or Deployment.
type ProcessReport struct {
	Name string `json:"name"`
	// PID is 0 for what is no process of this machine's user.
	PID   int  `json:"pid,omitempty"`
	Alive bool `json:"alive"`
	// Log is a file, or the command that prints the log.
	Log string `json:"log"`
}

// Healthy reports whether the demo is up and all of its processes run.
func (r Report) Healthy() bool { return r.Phase == Running && len(r.ended()) == 0 }

// ended names the processes that should run and do not: those of a cluster with its name.
func (r Report) ended() []string {
	var out []string
	note := func(where string, p ProcessReport) {
		if !p.Alive {
			out = append(out, where+cmp.Or(p.Name, "meshctl serve"))
		}
	}
	for _, c := range r.Clusters {
		for _, p := range c.Processes {
			note(c.Name+" ", p)
		}
	}
	if r.Proxies != nil {
		note("", *r.Proxies)
	}
	for _, p := range r.Agents {
		note("", p)
	}
	note("", r.Serve)
	return out
}

// Status reports on the demo in opts.Dir. It returns ErrNotRunning if there is none.
func Status(ctx context.Context, opts Options) (Report, error) {
	opts, err := opts.complete()
	if err != nil {
		return Report{}, err
	}
	s, err := existing(opts)
	if err != nil {
		return Report{}, err
	}
	opts.Runtime = s.Runtime
	runtime, err := newRuntime(opts, nil)
	if err != nil {
		return Report{}, err
	}
	r := Report{
		Dir: opts.Dir, Phase: s.Phase, Runtime: s.Runtime, Created: s.Created, Versions: s.Versions,
	}
	if s.Phase == Starting && !s.busy() {
		// Up was killed, and its guard has killed the processes.
		r.Phase = Failed
	}
	if r.Phase == Running {
		r.Kubeconfig = filepath.Join(opts.Dir, kubeconfigFile)
	}
	for _, name := range s.Clusters {
		c, err := runtime.Open(name)
		if errors.Is(err, ErrNoCluster) {
			continue
		}
		if err != nil {
			return Report{}, fmt.Errorf("demo: %w", err)
		}
		r.Clusters = append(r.Clusters, reportCluster(c))
	}
	runtime.report(ctx, s, &r)
	return r, nil
}

func reportCluster(c Cluster) ClusterReport {
	report := ClusterReport{Name: c.Name()}
	if config, err := clientcmd.BuildConfigFromFlags("", c.Kubeconfig()); err == nil {
		report.Server = config.Host
	}
	return report
}

func reportProcess(p proc.Process) ProcessReport {
	return ProcessReport{p.Name, p.PID, p.Alive(), p.Log}
}

// Kubeconfig returns the path of the kubeconfig file with a context for each
// cluster of the running demo; that of the management cluster is the current one.
func Kubeconfig(_ context.Context, opts Options) (string, error) {
	opts, _, err := running(opts)
	if err != nil {
		return "", err
	}
	return filepath.Join(opts.Dir, kubeconfigFile), nil
}

// Server returns the URL of the metrics of the running demo's meshctl serve; empty if none runs on this machine.
func Server(opts Options) string {
	_, s, err := running(opts)
	if err != nil || s.Metrics == "" {
		return ""
	}
	return "http://" + s.Metrics
}

func existing(opts Options) (state, error) {
	s, err := readState(opts.Dir)
	if errors.Is(err, fs.ErrNotExist) {
		return state{}, fmt.Errorf("demo: folder %s: %w", opts.Dir, ErrNotRunning)
	}
	return s, err
}
