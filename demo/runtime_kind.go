package demo

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	typedappsv1 "k8s.io/client-go/kubernetes/typed/apps/v1"
	typedcorev1 "k8s.io/client-go/kubernetes/typed/core/v1"
	"k8s.io/client-go/rest"

	"github.com/meshctl/meshctl/demo/kind"
	"github.com/meshctl/meshctl/demo/proxies"
)

// Where meshctl runs in the management cluster, as `meshctl install` has it.
const (
	planeNamespace  = "gloo-mesh"
	agentNamespace  = "gloo-mesh-agent"
	serveDeployment = "meshctl"
)

// kindRuntime is the Runtime of kind clusters, in whose pods everything runs.
type kindRuntime struct {
	Options
	engine *kind.Engine

	// What Prepare found: the images of nodes and of meshctl, and those of Istio.
	nodes, meshctl string
	istio          []string
}

func newKindRuntime(opts Options) (*kindRuntime, error) {
	if opts.Proxies != ProxiesAuto {
		return nil, fmt.Errorf("demo: --proxies %s: the pods of runtime %s always have proxies", opts.Proxies, RuntimeKind)
	}
	engine, err := kind.FindEngine()
	if err != nil {
		return nil, fmt.Errorf("demo: %w", err)
	}
	return &kindRuntime{Options: opts, engine: engine}, nil
}

// Prepare makes sure that clusters can be created, and gets the images that they need first.
func (r *kindRuntime) Prepare(ctx context.Context, report func(string)) (err error) {
	if err := r.engine.Check(ctx); err != nil {
		return err
	}
	for _, name := range clusterNames() {
		if err := r.engine.Free(name); err != nil {
			return err
		}
	}
	if r.istio, _, err = kind.IstioImages(); err != nil {
		return err
	}
	if r.meshctl = r.Image; r.meshctl == "" {
		report("making an image of " + r.Options.Meshctl)
		if r.meshctl, err = r.engine.MeshctlImage(ctx, r.Options.Meshctl); err != nil {
			return err
		}
	}
	if r.nodes = r.NodeImage; r.nodes == "" {
		r.nodes = kind.DefaultNodeImage
	}
	return r.engine.Pull(ctx, r.nodes, report)
}

// Create creates a cluster and installs Istio.
func (r *kindRuntime) Create(ctx context.Context, name string, _ int, report func(string)) (Cluster, error) {
	report("starting its node")
	c, err := r.engine.Create(ctx, kind.Options{
		Name: name, Dir: filepath.Join(r.Dir, name), NodeImage: r.nodes, Images: append([]string{r.meshctl}, r.istio...),
	}, report)
	if err != nil {
		return nil, err
	}
	report("its node is ready, installing Istio")
	// On error it stays, so that its logs can be saved.
	return c, c.InstallIstio(ctx)
}

// StartProxies does nothing: kubelets start them.
func (r *kindRuntime) StartProxies(context.Context, []Cluster) (*proxies.Plane, string, error) {
	return nil, "", nil
}

// Adapt has the pods run the application of the demo.
func (r *kindRuntime) Adapt(objects []*unstructured.Unstructured, cluster string) error {
	return kind.Replace(objects, cluster, r.meshctl)
}

// Open opens a cluster that Create created.
func (r *kindRuntime) Open(name string) (Cluster, error) {
	c, err := r.engine.Open(filepath.Join(r.Dir, name), name)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, ErrNoCluster
	}
	return c, err
}

// Versions are those of Istio, and of Kubernetes on the node of the first cluster.
func (r *kindRuntime) Versions(clusters []Cluster) (map[string]string, error) {
	_, istio, err := kind.IstioImages()
	if err != nil {
		return nil, fmt.Errorf("demo: %w", err)
	}
	kubernetes, err := r.engine.KubernetesVersion(clusters[0].Name())
	if err != nil {
		return nil, fmt.Errorf("demo: %w", err)
	}
	return map[string]string{"kubernetes": kubernetes, "istio": istio}, nil
}

func (r *kindRuntime) manage(u *up) []step {
	return []step{
		{title: "Starting bookinfo", run: u.startApplication},
		{title: "Installing meshctl in " + u.state.Clusters[0], run: func(ctx context.Context) error {
			return u.meshctl(ctx, append([]string{"install", "--kubeconfig", u.kubeconfig(), "--context", u.clusters[0].Context()}, r.installFlags()...)...)
		}},
		{title: "Registering both clusters, with an agent each", run: func(ctx context.Context) error {
			for i, c := range u.clusters {
				if err := u.registerOne(ctx, c, r.registerFlags(c.Name(), i == 0, i == len(u.clusters)-1)...); err != nil {
					return err
				}
			}
			return nil
		}},
		{title: "Applying a VirtualMesh", run: u.applyVirtualMesh},
	}
}

// installFlags are those of `meshctl install`. Agents in other clusters reach a port of the node: kind has no load balancers, and its nodes
// are in one network.
func (r *kindRuntime) installFlags() []string {
	flags := []string{"--image", r.meshctl}
	if r.Relay {
		flags = append(flags, "--relay", "--relay-service-type", string(corev1.ServiceTypeNodePort))
	}
	return flags
}

// registerFlags are those of `meshctl cluster register` for a cluster, which may be the first or the last one.
func (r *kindRuntime) registerFlags(cluster string, first, last bool) []string {
	flags := []string{"--agent-image", r.meshctl}
	switch {
	case first: // serve runs in it
	case last && r.Relay:
		flags = append(flags, "--relay")
	default:
		flags = append(flags, "--api-server-address", kind.APIServer(cluster))
	}
	return flags
}

// revive waits until the pods work again: whatever ended of them, Kubernetes starts.
func (r *kindRuntime) revive(ctx context.Context, u *up) error {
	ctx, cancel := context.WithTimeout(ctx, serveTimeout)
	defer cancel()
	for _, c := range u.clusters {
		client, err := c.Client()
		if err != nil {
			return err
		}
		node, err := r.engine.Open(filepath.Join(r.Dir, c.Name()), c.Name())
		if err != nil {
			return err
		}
		for _, namespace := range []string{"istio-system", planeNamespace, "bookinfo"} {
			if err := node.WaitPods(ctx, namespace); err != nil {
				return err
			}
			if err := client.WaitDeployments(ctx, namespace); err != nil {
				return err
			}
		}
	}
	return nil
}

// serveLog gets it from the pods.
func (r *kindRuntime) serveLog(ctx context.Context, s state) string {
	lines, err := r.readServeLog(ctx, s)
	if err != nil {
		return fmt.Sprintf("the log of meshctl serve cannot be read: %v", err)
	}
	return "the last lines of meshctl serve:\n" + lines
}

func (r *kindRuntime) readServeLog(ctx context.Context, s state) (string, error) {
	config, err := r.management(s)
	if err != nil {
		return "", err
	}
	client, err := typedcorev1.NewForConfig(config)
	if err != nil {
		return "", err
	}
	pods, err := client.Pods(planeNamespace).List(ctx, metav1.ListOptions{LabelSelector: "app.kubernetes.io/name=" + serveDeployment})
	if err != nil {
		return "", err
	}
	var all []string
	for i := range pods.Items {
		lines := int64(8)
		log, err := client.Pods(planeNamespace).GetLogs(pods.Items[i].Name, &corev1.PodLogOptions{TailLines: &lines}).DoRaw(ctx)
		if err != nil {
			return "", err
		}
		all = append(all, pods.Items[i].Name+":\n"+string(log))
	}
	return strings.Join(all, "\n"), nil
}

// management is the access to the management cluster.
func (r *kindRuntime) management(s state) (*rest.Config, error) {
	c, err := r.engine.Open(filepath.Join(r.Dir, s.Clusters[0]), s.Clusters[0])
	if err != nil {
		return nil, err
	}
	return c.Config()
}

func (r *kindRuntime) report(ctx context.Context, s state, report *Report) {
	for i := range report.Clusters {
		c, err := r.engine.Open(filepath.Join(r.Dir, report.Clusters[i].Name), report.Clusters[i].Name)
		if err != nil {
			continue // it was there a moment ago
		}
		name, running := c.Node(ctx)
		report.Clusters[i].Processes = []ProcessReport{{Name: "node " + name, Alive: running, Log: c.Logs()}}
		if i == 0 {
			report.Serve = ProcessReport{
				Name: "Deployment " + planeNamespace + "/" + serveDeployment, Alive: running && r.serves(ctx, s),
				Log: fmt.Sprintf("kubectl --context %s -n %s logs deploy/%s --all-pods", c.Context(), planeNamespace, serveDeployment),
			}
		}
	}
}

// serves reports whether a replica of the management plane is ready.
func (r *kindRuntime) serves(ctx context.Context, s state) bool {
	config, err := r.management(s)
	if err != nil {
		return false
	}
	client, err := typedappsv1.NewForConfig(config)
	if err != nil {
		return false
	}
	d, err := client.Deployments(planeNamespace).Get(ctx, serveDeployment, metav1.GetOptions{})
	return err == nil && d.Status.ReadyReplicas > 0
}

func (r *kindRuntime) plane(s state) (dataPlane, error) {
	var clusters []*kind.Cluster
	for _, name := range s.Clusters {
		c, err := r.engine.Open(filepath.Join(r.Dir, name), name)
		if err != nil {
			return nil, fmt.Errorf("demo: %w", err)
		}
		clusters = append(clusters, c)
	}
	return kind.NewPlane(clusters...), nil
}

// saveLogs saves the logs of nodes before they are deleted. What cannot be saved must not hide
// why the demo failed.
func (r *kindRuntime) saveLogs(s state) {
	for _, name := range s.Clusters {
		if c, err := r.engine.Open(filepath.Join(r.Dir, name), name); err == nil {
			c.SaveLogs(filepath.Join(r.Dir, name, logsDir), nil)
		}
	}
}
