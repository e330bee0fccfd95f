package demo

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"time"

	"golang.org/x/sync/errgroup"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/meshctl/meshctl/demo/helper"
	"github.com/meshctl/meshctl/demo/kube"
	"github.com/meshctl/meshctl/demo/local"
	"github.com/meshctl/meshctl/demo/manifests"
	"github.com/meshctl/meshctl/demo/proc"
	"github.com/meshctl/meshctl/demo/proxies"
)

// agentTimeout bounds the time until the agents have their credentials, which is a second on
// an idle machine.
const agentTimeout = 2 * time.Minute

// watches is how many instances of inotify the processes of a demo have, which are 36, and some more.
const watches = 45

// localRuntime is the Runtime of local processes, with a folder for each cluster,
// and one for the proxies.
type localRuntime struct {
	dir      string
	meshctl  string
	guard    *proc.Guard
	terminal bool
	mode     ProxyMode

	// What Prepare found: the programs, and why there are no proxies; empty if there
	// are.
	binary   string
	programs proxies.Binaries
	why      string
	// inside are programs for the network of the last cluster.
	inside []proxies.Program
}

// Prepare builds the helper binaries.
func (r *localRuntime) Prepare(ctx context.Context, report func(string)) (err error) {
	if err := enoughWatches(watches); err != nil {
		return err
	}
	progress := helper.Progress{Report: report, Every: 15 * time.Second}
	if r.terminal {
		progress.Every = 500 * time.Millisecond
	}
	if r.binary, err = helper.Build(ctx, progress); err != nil {
		return err
	}
	if r.mode == ProxiesOff {
		r.why = "proxies are off"
		return nil
	}
	r.programs, err = proxies.Prepare(ctx, progress)
	if errors.Is(err, proxies.ErrUnavailable) && r.mode == ProxiesAuto {
		r.why = err.Error()
		return nil
	}
	return err
}

// Create starts a cluster and installs Istio.
func (r *localRuntime) Create(ctx context.Context, name string, index int, report func(string)) (Cluster, error) {
	report("starting Kubernetes")
	c, err := local.Start(ctx, local.Options{
		Name: name, Dir: filepath.Join(r.dir, name), Helper: r.binary, Index: index, Guard: r.guard,
		RealProxies: r.why == "",
	})
	if err != nil {
		return nil, err
	}
	report("Kubernetes is ready, installing Istio")
	if err := c.InstallIstio(ctx, local.IstioOptions{TrustDomain: name + ".example", GatewaysLater: true}); err != nil {
		return nil, stopAfter(ctx, c, err)
	}
	return c, nil
}

// StartProxies starts the gateways, and one process for the proxies of all clusters.
func (r *localRuntime) StartProxies(ctx context.Context, clusters []Cluster) (*proxies.Plane, string, error) {
	list := make([]proxies.Cluster, 0, len(clusters))
	for i, c := range clusters {
		opened, err := local.Open(filepath.Join(r.dir, c.Name()), r.guard)
		if err == nil {
			err = local.StartGateways(ctx, opened)
		}
		if err != nil {
			return nil, "", err
		}
		list = append(list, proxies.Cluster{Name: c.Name(), Index: opened.Index(), Kubeconfig: c.Kubeconfig(), Istiod: opened.Istiod(), Kubelet: local.KubeletServerOf(opened)})
		if i == len(clusters)-1 {
			list[i].Programs = r.inside
		}
	}
	if r.why != "" {
		return nil, r.why, nil
	}
	plane, err := proxies.Start(ctx, r.guard, filepath.Join(r.dir, proxiesDir), r.programs, r.meshctl, list)
	return plane, "", err
}

// runAgents starts for each cluster an agent outside of it, because its pods do not run,
// and a kubelet for what they need. On error, it returns those that run.
func (r *localRuntime) runAgents(ctx context.Context, clusters []Cluster, relay *relayState) ([]proc.Process, error) {
	start := func(name string, args ...string) (proc.Process, error) {
		return proc.Start(r.guard, proc.Spec{
			Name: name, Path: r.meshctl, Args: args, Dir: r.dir, Log: filepath.Join(r.dir, logsDir, strings.ReplaceAll(name, " ", "-")+".log"),
		})
	}
	kubelet, err := start("kubelet", "demo", "kubelet", "--dir", r.dir)
	if err != nil {
		return nil, err
	}
	started := []proc.Process{kubelet}
	for i, c := range clusters {
		opened, err := local.Open(filepath.Join(r.dir, c.Name()), r.guard)
		if err != nil {
			return started, err
		}
		files := opened.AgentFiles()
		if err := r.waitCredentials(ctx, kubelet, files.Kubeconfig); err != nil {
			return started, fmt.Errorf("cluster %s: %w", c.Name(), err)
		}
		args, _, err := agentArgs(opened)
		if err != nil {
			return started, err
		}
		if relay != nil && i == len(clusters)-1 {
			if relay.Inside {
				continue
			}
			// Proxies do not reach it here, where another demo may use the port.
			args = append(args, "--relay-server", relay.Address, "--push-bind=")
		}
		agent, err := start("agent of "+c.Name(), args...)
		if err != nil {
			return started, err
		}
		started = append(started, agent)
	}
	return started, nil
}

// agentArgs run the agent of a cluster, whose namespace they name.
func agentArgs(c *local.Cluster) (args []string, namespace string, err error) {
	files := c.AgentFiles()
	if namespace, err = kube.Namespace(files.Kubeconfig); err != nil {
		return nil, "", fmt.Errorf("cluster %s: %w", c.Name(), err)
	}
	return []string{
		"agent", "--kubeconfig", files.Kubeconfig, "--namespace", namespace, "--token-file", files.Token,
		"--istiod-address", c.Istiod(), "--cluster-id", c.Name(), "--health-bind=",
	}, namespace, nil
}

// moveAgent ends the agent that dials the management plane, and has it start with the proxies, in the network of its cluster: they can send to
// it there, and it reaches them. Without proxies, it stays.
func (r *localRuntime) moveAgent(ctx context.Context, u *up) error {
	if r.why != "" {
		return nil
	}
	opened, err := local.Open(filepath.Join(r.dir, u.clusters[len(u.clusters)-1].Name()), r.guard)
	if err != nil {
		return err
	}
	args, namespace, err := agentArgs(opened)
	if err != nil {
		return err
	}
	config, err := opened.Config()
	if err != nil {
		return err
	}
	server, err := url.Parse(config.Host)
	if err != nil {
		return fmt.Errorf("cluster %s: its API server: %w", opened.Name(), err)
	}
	client, err := opened.Client()
	if err != nil {
		return err
	}
	if err := client.ApplyYAML(ctx, manifests.Agent(namespace)); err != nil {
		return err
	}
	last := len(u.state.Agents) - 1
	if err := u.state.Agents[last].Kill(ctx); err != nil {
		return err
	}
	u.state.Agents, u.state.Relay.Inside = u.state.Agents[:last], true
	r.inside = []proxies.Program{{
		Namespace: namespace, Labels: map[string]string{"app.kubernetes.io/name": "meshctl-agent"},
		Path: r.meshctl, Args: append(args, "--relay-server", u.state.Relay.Address),
		Hosts: []string{net.JoinHostPort("127.0.0.1", server.Port()), opened.Istiod(), u.state.Relay.Address},
	}}
	return u.state.write(u.opts.Dir)
}

// Adapt changes nothing: the pods are processes, whatever their images.
func (r *localRuntime) Adapt([]*unstructured.Unstructured, string) error { return nil }

func (r *localRuntime) manage(u *up) []step {
	steps := []step{
		// The management cluster is registered, too, because it also runs workloads.
		{title: "Registering both clusters", run: u.register},
		{title: "Starting meshctl serve, and an agent for each cluster", run: func(ctx context.Context) error { return r.startServing(ctx, u) }, undo: u.stopServing},
	}
	if u.opts.Relay {
		steps = []step{
			{title: "Registering cluster-1, and starting meshctl serve", run: func(ctx context.Context) error { return r.startHub(ctx, u) }, undo: u.stopServing},
			{title: "Joining cluster-2 by its agent", run: func(ctx context.Context) error { return r.join(ctx, u) }},
		}
	}
	return append(steps,
		step{title: "Applying a VirtualMesh, which gives both meshes a common root", run: u.join},
		step{title: "Starting bookinfo, each pod with its proxy", run: func(ctx context.Context) error {
			if u.state.Relay != nil {
				if err := r.moveAgent(ctx, u); err != nil {
					return err
				}
			}
			return u.startApplication(ctx)
		}},
	)
}

func (r *localRuntime) revive(ctx context.Context, u *up) error {
	if err := u.reviveProxies(ctx); err != nil {
		return err
	}
	if err := r.reviveTunnel(u); err != nil {
		return err
	}
	if err := r.reviveAgents(ctx, u); err != nil {
		return err
	}
	if err := u.waitServe(ctx); err == nil || u.state.Serve.Alive() {
		return err
	}
	u.opts.Progress.Note("meshctl serve had exited and is restarted")
	return u.startServe(ctx)
}

func (r *localRuntime) serveLog(_ context.Context, s state) string {
	return fmt.Sprintf("the last lines of %s:\n%s", s.Serve.Log, s.Serve.Tail(8))
}

// saveLogs does nothing: the logs stay in the folder.
func (r *localRuntime) saveLogs(state) {}

func (r *localRuntime) plane(s state) (dataPlane, error) { return localPlane(s) }

func (r *localRuntime) report(_ context.Context, s state, report *Report) {
	if s.Relay != nil {
		report.Agents = append(report.Agents, reportProcess(s.Relay.Tunnel))
	}
	report.Serve, report.NoProxies, report.Metrics = reportProcess(s.Serve), s.NoProxies, s.Metrics
	for _, agent := range s.Agents {
		report.Agents = append(report.Agents, reportProcess(agent))
	}
	if s.Proxies.PID != 0 {
		plane := reportProcess(s.Proxies)
		report.Proxies = &plane
	}
	for i := range report.Clusters {
		c, err := local.Open(filepath.Join(r.dir, report.Clusters[i].Name), nil)
		if err != nil {
			continue // it was there a moment ago
		}
		for _, p := range c.Processes() {
			report.Clusters[i].Processes = append(report.Clusters[i].Processes, reportProcess(p))
		}
	}
}

// localPlane opens the data plane of processes.
func localPlane(s state) (*proxies.Plane, error) {
	switch {
	case s.Proxies.PID == 0:
		return nil, fmt.Errorf("demo: %w: %s; `meshctl demo down` and `meshctl demo up --proxies=on` start it with them", ErrNoProxies, s.NoProxies)
	case !s.Proxies.Alive():
		return nil, fmt.Errorf("demo: its proxies have exited; restart them with `meshctl demo up`; the last lines of %s:\n%s", s.Proxies.Log, s.Proxies.Tail(8))
	}
	return proxies.Open(s.Proxies), nil
}

// waitCredentials waits until the kubelet has written the credentials of an agent.
func (r *localRuntime) waitCredentials(ctx context.Context, kubelet proc.Process, file string) error {
	ctx, cancel := context.WithTimeout(ctx, agentTimeout)
	defer cancel()
	return kube.Until(ctx, "waiting for the credentials of its agent", func(context.Context) error {
		_, err := os.Stat(file)
		if err != nil && !kubelet.Alive() {
			return kube.Final(fmt.Errorf("the kubelet exited; the last lines of %s:\n%s", kubelet.Log, kubelet.Tail(8)))
		}
		return err
	})
}

// Kubelet does for the clusters in a folder of a demo what a kubelet does for the pods that
// are processes here. It runs until ctx ends.
func Kubelet(ctx context.Context, opts Options) error {
	opts, err := opts.complete()
	if err != nil {
		return err
	}
	s, err := existing(opts)
	if err != nil {
		return err
	}
	group, ctx := errgroup.WithContext(ctx)
	for _, name := range s.Clusters {
		c, err := local.Open(filepath.Join(opts.Dir, name), nil)
		if err != nil {
			return fmt.Errorf("demo: %w", err)
		}
		group.Go(func() error { return c.Kubelet(ctx) })
	}
	return group.Wait()
}

// Open reads the state in the cluster's folder.
func (r *localRuntime) Open(name string) (Cluster, error) {
	return local.Open(filepath.Join(r.dir, name), r.guard)
}

// Versions are those of the helper's modules and, once prepared, of Envoy.
func (r *localRuntime) Versions([]Cluster) (map[string]string, error) {
	v, err := helper.ReadVersions()
	if err != nil {
		return nil, fmt.Errorf("demo: %w", err)
	}
	versions := map[string]string{"kubernetes": v.Kubernetes, "istio": v.Istio}
	if r.programs.EnvoyVersion != "" {
		versions["envoy"] = r.programs.EnvoyVersion
	}
	return versions, nil
}
