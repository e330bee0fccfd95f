package local

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"sync"
	"time"

	"k8s.io/client-go/rest"

	"github.com/meshctl/meshctl/demo/files"
	"github.com/meshctl/meshctl/demo/kube"
	"github.com/meshctl/meshctl/demo/proc"
)

const (
	auditPolicyFile = "audit-policy.yaml"
	stagesFile      = "kwok-stages.yaml"
	// startTimeout is long: two clusters start in half a minute on two idle
	// cores. A component that exits is detected at once.
	startTimeout = 10 * time.Minute
)

// Options describe a cluster to create.
type Options struct {
	// Name of the cluster and of its kubeconfig context.
	Name string
	// Dir is the folder of the cluster; it must be empty or absent.
	Dir string
	// Helper is the path of the helper binary (helper.Build).
	Helper string
	// Index, 1 to 15, gives clusters that are used together different addresses
	// of pods, services, nodes and gateways.
	Index int
	// Guard kills the processes when the caller dies; the caller releases or
	// closes it.
	Guard *proc.Guard
	// APIServerOnly starts only etcd and the API server: objects are stored, and
	// no controller runs.
	APIServerOnly bool
	// RealProxies leaves pods that have a proxy to package proxies, which runs
	// them; until then, they are not ready. Istio is installed for Envoy as its
	// project builds it, without the extensions that only Istio's build has.
	RealProxies bool
}

// Cluster is a running cluster, or a stopped one. Its methods may be called
// concurrently.
type Cluster struct {
	dir string
	pki pki

	guard *proc.Guard
	mu    sync.Mutex // guards the processes in state, and its file
	state state
}

// Start starts a cluster and returns when its API server and, unless
// APIServerOnly, its nodes are ready. On error its processes are stopped; the
// folder stays, for its logs.
func Start(ctx context.Context, opts Options) (*Cluster, error) {
	c, err := create(opts)
	if err != nil {
		return nil, fmt.Errorf("cluster %s: %w", opts.Name, err)
	}
	ctx, cancel := context.WithTimeout(ctx, startTimeout)
	defer cancel()
	if err := c.start(ctx, opts); err != nil {
		return nil, errors.Join(err, c.Stop(context.WithoutCancel(ctx)))
	}
	return c, nil
}

// Open opens the cluster in dir, whether its processes run or not. It returns
// ErrNoCluster if there is none. Processes that are started later are watched by
// guard, which may be nil if none will be.
func Open(dir string, guard *proc.Guard) (*Cluster, error) {
	s, err := readState(dir)
	if err != nil {
		return nil, err
	}
	return &Cluster{dir: dir, pki: pki{filepath.Join(dir, "pki")}, guard: guard, state: s}, nil
}

// Index returns the index that the cluster was created with.
func (c *Cluster) Index() int { return c.state.Index }

// Istiod returns the address of istiod's port for proxies with TLS.
func (c *Cluster) Istiod() string { return c.address("istiod-grpcs") }

// KubeletServer is how the API server reaches the pods that package proxies runs.
type KubeletServer struct {
	// Address is that of the port that the status of the nodes names; empty if none does.
	Address string `json:"address"`
	// Certificate and Key are files of the kubelet's own, and CA that of the authority that signed
	// the certificate of the API server, whose common name is Client.
	Certificate string `json:"certificate"`
	Key         string `json:"key"`
	CA          string `json:"ca"`
	Client      string `json:"client"`
}

// KubeletServerOf returns where a kubelet of the cluster serves its API server.
func KubeletServerOf(c *Cluster) KubeletServer {
	if c.port(kubelet) == 0 {
		return KubeletServer{} // created by an older version
	}
	return KubeletServer{
		Address: c.address(kubelet), Certificate: c.pki.file(kubeletPair + ".crt"), Key: c.pki.file(kubeletPair + ".key"),
		CA: c.pki.file("ca.crt"), Client: kubeletClient,
	}
}

// Name returns the cluster's name.
func (c *Cluster) Name() string { return c.state.Name }

// Context returns the name of its context in kubeconfigs.
func (c *Cluster) Context() string { return c.Name() }

// Kubeconfig returns the path of the administrator's kubeconfig file.
func (c *Cluster) Kubeconfig() string { return c.path("kubeconfig") }

// AuditLog returns the path of the API server's audit log: JSON lines, one for
// every request that did not come from a component of the cluster itself.
func (c *Cluster) AuditLog() string { return c.path("logs", "audit.log") }

// Config returns the administrator's access, without client-side rate limit.
func (c *Cluster) Config() (*rest.Config, error) { return restConfig(c.Kubeconfig()) }

// Client returns a client with the administrator's access.
func (c *Cluster) Client() (*kube.Client, error) {
	config, err := c.Config()
	if err != nil {
		return nil, err
	}
	return kube.New(c.Name(), config)
}

// Processes returns the cluster's processes in the order in which they were started.
func (c *Cluster) Processes() []proc.Process {
	c.mu.Lock()
	defer c.mu.Unlock()
	return append([]proc.Process(nil), c.state.Processes...)
}

// Stop kills all processes, the last started first. An API server with open
// watches would take a minute to terminate gracefully.
func (c *Cluster) Stop(ctx context.Context) error {
	processes := c.Processes()
	var errs []error
	for i := len(processes) - 1; i >= 0; i-- {
		errs = append(errs, c.end(ctx, processes[i]))
	}
	return errors.Join(errs...)
}

func (c *Cluster) path(parts ...string) string {
	return filepath.Join(append([]string{c.dir}, parts...)...)
}

// create creates the folder and everything in it that the first process needs.
func create(opts Options) (*Cluster, error) {
	c := &Cluster{
		dir: opts.Dir, pki: pki{filepath.Join(opts.Dir, "pki")}, guard: opts.Guard,
		state: state{Name: opts.Name, Index: opts.Index, Helper: opts.Helper, RealProxies: opts.RealProxies, Ports: map[string]int{}},
	}
	// etcd requires a data folder that only its owner can read.
	for _, dir := range []string{c.path("logs"), c.path("etcd"), c.path("istiod")} {
		if err := os.MkdirAll(dir, 0o700); err != nil {
			return nil, fmt.Errorf("creating its folder: %w", err)
		}
	}
	// The state file owns the ports, so it is written first.
	if err := c.state.write(c.dir); err != nil {
		return nil, err
	}
	for role := range portNames() {
		if err := c.reservePorts(role); err != nil {
			return nil, err
		}
	}
	if err := c.pki.create(opts.Name, c.server()); err != nil {
		return nil, err
	}
	admin, err := os.ReadFile(c.pki.file("admin.kubeconfig"))
	if err != nil {
		return nil, err
	}
	if err := files.Write(c.Kubeconfig(), admin); err != nil {
		return nil, err
	}
	// The API server appends to a log that exists, so that Restore may empty it.
	if err := files.Write(c.AuditLog(), nil); err != nil {
		return nil, err
	}
	return c, files.Write(c.path(auditPolicyFile), []byte(auditPolicy()))
}

func (c *Cluster) start(ctx context.Context, opts Options) error {
	err := c.onFreePorts(func() error {
		if err := c.run(ctx, Etcd, nil, linesFor(c).etcdArgs()...); err != nil {
			return err
		}
		// The API server waits for etcd itself.
		if err := c.run(ctx, APIServer, nil, linesFor(c).apiServerArgs()...); err != nil {
			return err
		}
		return readinessOf(c).waitAPIServer(ctx)
	})
	if err != nil || opts.APIServerOnly {
		return err
	}
	stages, err := c.helperOutput(ctx, nil, "kwok-stages")
	if err != nil {
		return err
	}
	if opts.RealProxies {
		stages, err = withoutProxies(stages)
		if err != nil {
			return fmt.Errorf("cluster %s: %w", c.Name(), err)
		}
	}
	if err := files.Write(c.path(stagesFile), stages); err != nil {
		return err
	}
	for _, role := range []struct {
		name      string
		env, args []string
	}{
		{ControllerManager, nil, linesFor(c).controllerManagerArgs()},
		{Scheduler, nil, linesFor(c).schedulerArgs()},
		{Kwok, linesFor(c).kwokEnv(), linesFor(c).kwokArgs()},
	} {
		if err := c.run(ctx, role.name, role.env, role.args...); err != nil {
			return err
		}
	}
	return nodesOf(c).createNodes(ctx)
}

// helperOutput runs a role that prints something and exits.
func (c *Cluster) helperOutput(ctx context.Context, input []byte, args ...string) ([]byte, error) {
	command := exec.CommandContext(ctx, c.state.Helper, args...)
	command.Stdin = newReader(input)
	out, err := command.Output()
	if exit := (*exec.ExitError)(nil); errors.As(err, &exit) {
		return nil, fmt.Errorf("cluster %s: %s: %w: %s", c.Name(), args[0], err, exit.Stderr)
	}
	if err != nil {
		return nil, fmt.Errorf("cluster %s: %s: %w", c.Name(), args[0], err)
	}
	return out, nil
}
