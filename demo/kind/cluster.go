package kind

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	"sigs.k8s.io/kind/pkg/apis/config/defaults"
	"sigs.k8s.io/kind/pkg/cluster"
	"sigs.k8s.io/kind/pkg/cluster/nodes"
	"sigs.k8s.io/kind/pkg/cluster/nodeutils"
	kindexec "sigs.k8s.io/kind/pkg/exec"

	"github.com/meshctl/meshctl/demo/files"
	"github.com/meshctl/meshctl/demo/kube"
)

// DefaultNodeImage is the image of nodes if none is given: that of this version of kind.
const DefaultNodeImage = defaults.Image

// prefix distinguishes the clusters of a demo from the user's own.
const prefix = "meshctl-"

// stateFile says that the cluster of the same name is ours.
const stateFile = "state.json"

const (
	// readyTimeout bounds the start of a node, which takes half a minute.
	readyTimeout = 5 * time.Minute
	// startTimeout bounds that of pods whose images may have to be pulled first.
	startTimeout = 15 * time.Minute
)

// Options describe a cluster to create.
type Options struct {
	Name string
	// Dir is the folder of its files; it must be empty or absent.
	Dir string
	// NodeImage is the image of its node, which the engine has.
	NodeImage string
	// Images are copied to the node where the engine has them; others are pulled by it.
	Images []string
}

// Cluster is a kind cluster of a demo.
type Cluster struct {
	dir, name string
	engine    *Engine
}

// state is the content of stateFile.
type state struct {
	Node string `json:"node"`
}

// Create creates a cluster, and copies the images to it. On error nothing of it stays.
func (e *Engine) Create(ctx context.Context, o Options, report func(string)) (*Cluster, error) {
	c := &Cluster{dir: o.Dir, name: o.Name, engine: e}
	if err := e.Free(o.Name); err != nil {
		return nil, err
	}
	if err := os.MkdirAll(o.Dir, 0o700); err != nil {
		return nil, fmt.Errorf("cluster %s: %w", o.Name, err)
	}
	if err := files.WriteState(filepath.Join(o.Dir, stateFile), state{Node: c.kindName() + "-control-plane"}); err != nil {
		return nil, fmt.Errorf("cluster %s: %w", o.Name, err)
	}
	err := c.create(ctx, o)
	if err == nil {
		err = c.loadImages(ctx, o.Images, report)
	}
	if err != nil {
		if ctx.Err() == nil { // nobody waits for logs who has interrupted it
			c.SaveLogs(filepath.Join(o.Dir, "logs"), err)
		}
		return nil, errors.Join(fmt.Errorf("cluster %s: %w", o.Name, err), c.Stop(context.WithoutCancel(ctx)))
	}
	return c, nil
}

// Free returns an error if a kind cluster has the name of one that is to be created.
func (e *Engine) Free(name string) error {
	taken, err := e.provider.List()
	if err != nil {
		return fmt.Errorf("listing the kind clusters: %w", explain(err))
	}
	if slices.Contains(taken, prefix+name) {
		return fmt.Errorf("cluster %s: there is a kind cluster %s already; stop the demo that it belongs to (`meshctl demo down`, with its --dir), or delete it with `kind delete cluster --name %s`",
			name, prefix+name, prefix+name)
	}
	return nil
}

// create creates the node. kind's library cannot be interrupted, but notices that its node is gone.
func (c *Cluster) create(ctx context.Context, o Options) error {
	created := make(chan error, 1)
	go func() {
		created <- c.engine.provider.Create(c.kindName(), cluster.CreateWithNodeImage(o.NodeImage),
			cluster.CreateWithKubeconfigPath(c.Kubeconfig()), cluster.CreateWithWaitForReady(readyTimeout),
			cluster.CreateWithDisplayUsage(false), cluster.CreateWithDisplaySalutation(false), cluster.CreateWithRetain(true))
	}()
	select {
	case err := <-created:
		return explain(err)
	case <-ctx.Done():
	}
	// At first, there may be nothing to delete yet.
	again := time.NewTicker(time.Second)
	defer again.Stop()
	for {
		_ = c.engine.provider.Delete(c.kindName(), c.Kubeconfig())
		select {
		case <-created: //nolint:errcheck // it was interrupted, whatever it says
			return context.Cause(ctx)
		case <-again.C:
		}
	}
}

// explain adds what a command of kind's library has printed last. All of it is in the logs.
func explain(err error) error {
	if run := kindexec.RunErrorForError(err); run != nil {
		lines := strings.Split(strings.TrimSpace(string(run.Output)), "\n")
		return fmt.Errorf("%w: %s", err, strings.Join(lines[max(0, len(lines)-5):], "\n"))
	}
	return err
}

// LoadImage copies an image that the engine has to the node of a demo's cluster.
func (e *Engine) LoadImage(ctx context.Context, name, image string) error {
	node, err := (&Cluster{name: name, engine: e}).node()
	if err != nil {
		return fmt.Errorf("cluster %s: %w", name, err)
	}
	return e.load(ctx, node, image)
}

// loadImages copies images to the node, where the engine has them.
func (c *Cluster) loadImages(ctx context.Context, images []string, report func(string)) error {
	node, err := c.node()
	if err != nil {
		return err
	}
	for _, image := range images {
		if !c.engine.Has(ctx, image) {
			report(image + " is not here; the cluster pulls it")
			continue
		}
		report("loading " + image)
		if err := c.engine.load(ctx, node, image); err != nil {
			return err
		}
	}
	return nil
}

// Open opens the cluster of a folder. It returns os.ErrNotExist if there is none.
func (e *Engine) Open(dir, name string) (*Cluster, error) {
	if err := files.ReadState(filepath.Join(dir, stateFile), &state{}); err != nil {
		return nil, err
	}
	return &Cluster{dir: dir, name: name, engine: e}, nil
}

// kindName is what kind calls the cluster.
func (c *Cluster) kindName() string { return prefix + c.name }

// Name returns the name that meshctl calls the cluster by.
func (c *Cluster) Name() string { return c.name }

// Context returns the name of its context in kubeconfigs, which is kind's.
func (c *Cluster) Context() string { return "kind-" + c.kindName() }

// APIServer returns the address of the API server of a cluster in the network of the nodes.
func APIServer(name string) string { return prefix + name + "-control-plane:6443" }

// Kubeconfig returns the path of the administrator's kubeconfig.
func (c *Cluster) Kubeconfig() string { return filepath.Join(c.dir, "kubeconfig") }

// Config returns the administrator's access.
func (c *Cluster) Config() (*rest.Config, error) {
	config, err := clientcmd.BuildConfigFromFlags("", c.Kubeconfig())
	if err != nil {
		return nil, fmt.Errorf("cluster %s: %w", c.name, err)
	}
	config.QPS = -1
	return config, nil
}

// Client returns a client with the administrator's access.
func (c *Cluster) Client() (*kube.Client, error) {
	config, err := c.Config()
	if err != nil {
		return nil, err
	}
	return kube.New(c.name, config)
}

// node returns the one node of the cluster.
func (c *Cluster) node() (nodes.Node, error) {
	found, err := c.engine.provider.ListInternalNodes(c.kindName())
	if err != nil {
		return nil, explain(err)
	}
	if len(found) == 0 {
		return nil, fmt.Errorf("its node %s-control-plane is gone; remove the rest with `meshctl demo down`", c.kindName())
	}
	return found[0], nil
}

// Node returns the name of the container of its node, and whether it runs.
func (c *Cluster) Node(ctx context.Context) (name string, running bool) {
	name = c.kindName() + "-control-plane"
	out, err := c.engine.run(ctx, nil, "container", "inspect", "--format", "{{.State.Running}}", name)
	return name, err == nil && strings.TrimSpace(string(out)) == "true"
}

// Logs returns the command that prints the logs of the node.
func (c *Cluster) Logs() string { return c.engine.command + " logs " + c.kindName() + "-control-plane" }

// KubernetesVersion is that of the node of a cluster.
func (e *Engine) KubernetesVersion(name string) (string, error) {
	node, err := (&Cluster{name: name, engine: e}).node()
	if err != nil {
		return "", fmt.Errorf("cluster %s: %w", name, err)
	}
	version, err := nodeutils.KubeVersion(node)
	if err != nil {
		return "", fmt.Errorf("cluster %s: %w", name, explain(err))
	}
	return version, nil
}

// Revive starts the node if it does not run, as after a restart of the machine, and waits until its
// API server answers. It returns what it has started.
func (c *Cluster) Revive(ctx context.Context) ([]string, error) {
	name, running := c.Node(ctx)
	if running {
		return nil, nil
	}
	if _, err := c.engine.run(ctx, nil, "start", name); err != nil {
		return nil, err
	}
	// The engine may give it another port.
	if err := c.engine.provider.ExportKubeConfig(c.kindName(), c.Kubeconfig(), false); err != nil {
		return nil, fmt.Errorf("cluster %s: %w", c.name, explain(err))
	}
	client, err := c.Client()
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithTimeout(ctx, readyTimeout)
	defer cancel()
	return []string{"node " + name}, kube.Until(ctx, "waiting for its API server", client.Ready)
}

// SaveLogs writes the logs of the node and its pods to a folder, as far as they can be had, and what
// the command that failed has printed.
func (c *Cluster) SaveLogs(dir string, failed error) {
	_ = c.engine.provider.CollectLogs(c.kindName(), dir) // it says first what is the matter with a node
	if run := kindexec.RunErrorForError(failed); run != nil {
		_ = files.Write(filepath.Join(dir, "command.log"), run.Output)
	}
}

// Stop deletes the cluster.
func (c *Cluster) Stop(context.Context) error {
	if err := c.engine.provider.Delete(c.kindName(), c.Kubeconfig()); err != nil {
		return fmt.Errorf("cluster %s: deleting it: %w", c.name, explain(err))
	}
	if err := os.Remove(filepath.Join(c.dir, stateFile)); err != nil && !errors.Is(err, os.ErrNotExist) {
		return fmt.Errorf("cluster %s: %w", c.name, err)
	}
	return nil
}
