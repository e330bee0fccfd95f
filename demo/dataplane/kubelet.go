package main

import (
	"context"
	"encoding/json"
	"fmt"
	"log"
	"net/http"
	"os"
	"os/signal"
	"path/filepath"
	"sync"
	"time"

	"golang.org/x/sys/unix"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes"
	corelisters "k8s.io/client-go/listers/core/v1"
	"k8s.io/client-go/tools/cache"
	"k8s.io/client-go/tools/clientcmd"
)

// configuration is the file that the kubelet is started with.
type configuration struct {
	// Envoy is the path of the proxy, Bootstrap that of Istio's template for its
	// configuration.
	Envoy     string `json:"envoy"`
	Bootstrap string `json:"bootstrap"`
	// Application is the path of meshctl, whose role `demo app` is the application in
	// the pods.
	Application string `json:"application"`
	// TokenSeconds is the time between two tokens of a pod; 0 means an hour.
	TokenSeconds int             `json:"tokenSeconds"`
	Clusters     []clusterConfig `json:"clusters"`
}

// clusterConfig is a cluster whose pods get proxies.
type clusterConfig struct {
	Name string `json:"name"`
	// Index is that of the network of its pods, 10.INDEX.0.0/16.
	Index      int    `json:"index"`
	Kubeconfig string `json:"kubeconfig"`
	// Istiod is the address of istiod's port for proxies with TLS.
	Istiod string `json:"istiod"`
	// Kubelet is where the API server reaches the pods; without an address, it does not.
	Kubelet kubeletConfig `json:"kubelet"`
	// Programs run as pods without a proxy.
	Programs []program `json:"programs"`
}

// node stands in for the kubelets of all clusters: it follows the pods that have a
// proxy, and runs each one's network, application and proxy; and those of programs.
type node struct {
	configuration
	clusters map[string]*cluster
	breaks   breaks

	mu   sync.Mutex // guards pods
	pods map[string]*pod
}

// cluster is a cluster as the kubelet needs it.
type cluster struct {
	clusterConfig
	client   kubernetes.Interface
	network  *network
	pods     corelisters.PodLister
	services corelisters.ServiceLister
}

// kubelet runs until it is asked to end. Its working directory holds everything
// that it writes.
func kubelet(args []string) int {
	if len(args) != 2 {
		log.Print("want the path of a configuration file")
		return 2
	}
	ctx, stop := signal.NotifyContext(context.Background(), unix.SIGTERM, unix.SIGINT)
	defer stop()
	n := &node{clusters: map[string]*cluster{}, pods: map[string]*pod{}}
	if err := n.run(ctx, args[1]); err != nil {
		log.Print(err)
		return 1
	}
	return 0
}

func (n *node) run(ctx context.Context, path string) error {
	data, err := os.ReadFile(path)
	if err != nil {
		return err
	}
	if err := json.Unmarshal(data, &n.configuration); err != nil {
		return fmt.Errorf("%s: %w", path, err)
	}
	// Of an earlier process: pods that still exist start again.
	if err := os.RemoveAll(podsDir); err != nil {
		return err
	}
	if err := separateResolver(); err != nil {
		return err
	}
	for _, config := range n.configuration.Clusters {
		c, err := newCluster(config)
		if err != nil {
			return fmt.Errorf("cluster %s: %w", config.Name, err)
		}
		n.clusters[config.Name] = c
	}
	for _, c := range n.clusters {
		if err := n.follow(ctx, c); err != nil {
			return fmt.Errorf("cluster %s: %w", c.Name, err)
		}
	}
	for _, c := range n.clusters {
		if c.Kubelet.Address == "" {
			continue
		}
		if err := n.serveKubelet(ctx, c); err != nil {
			return fmt.Errorf("cluster %s: %w", c.Name, err)
		}
	}
	go n.balance(ctx)
	// Whoever can connect can send requests as any workload: the folder is the
	// user's own.
	return n.serveControl(ctx)
}

func newCluster(config clusterConfig) (*cluster, error) {
	rest, err := clientcmd.BuildConfigFromFlags("", config.Kubeconfig)
	if err != nil {
		return nil, err
	}
	rest.QPS = -1
	client, err := kubernetes.NewForConfig(rest)
	if err != nil {
		return nil, err
	}
	c := &cluster{clusterConfig: config, client: client}
	c.network, err = newNetwork(config.Index)
	if err != nil {
		return nil, err
	}
	// Agents reach istiod at the address of their router.
	_, err = c.network.relay(fmt.Sprintf("%s:%d", c.network.router, istiodPort), func(ctx context.Context) (connection, error) {
		return dialHost(ctx, config.Istiod)
	})
	return c, err
}

// podsDir has a folder for each pod that runs.
const podsDir = "pods"

// istiodPort is the usual port of istiod for proxies.
const istiodPort = 15012

// separateResolver gives proxies and their agents a resolver that knows programs only:
// other hosts outside the mesh do not exist for them, and agents must not ask themselves.
func separateResolver() error {
	const file, system = "resolv.conf", "/etc/resolv.conf"
	if err := os.WriteFile(file, []byte("nameserver "+resolver+"\n"), 0o600); err != nil {
		return err
	}
	target, err := filepath.EvalSymlinks(system)
	if err != nil {
		return err
	}
	if err := unix.Mount(file, target, "", unix.MS_BIND, ""); err != nil {
		return fmt.Errorf("replacing %s: %w", system, err)
	}
	return nil
}

// follow starts to follow the pods of a cluster.
func (n *node) follow(ctx context.Context, c *cluster) error {
	factory := informers.NewSharedInformerFactory(c.client, 0)
	pods, services := factory.Core().V1().Pods(), factory.Core().V1().Services()
	c.pods, c.services = pods.Lister(), services.Lister()
	seen, err := pods.Informer().AddEventHandler(cache.ResourceEventHandlerFuncs{
		AddFunc:    func(o any) { n.see(ctx, c, o) },
		UpdateFunc: func(_, o any) { n.see(ctx, c, o) },
		DeleteFunc: func(o any) { n.gone(o) },
	})
	if err != nil {
		return err
	}
	services.Informer()
	factory.Start(ctx.Done())
	for kind, synced := range factory.WaitForCacheSync(ctx.Done()) {
		if !synced {
			return fmt.Errorf("reading %s: %w", kind, context.Cause(ctx))
		}
	}
	if !cache.WaitForCacheSync(ctx.Done(), seen.HasSynced) {
		return context.Cause(ctx)
	}
	return nil
}

// see starts a pod that has an address and a proxy, or is a program's, and ends one
// that is being deleted.
func (n *node) see(ctx context.Context, c *cluster, object any) {
	spec, ok := object.(*corev1.Pod)
	if !ok || spec.Status.PodIP == "" {
		return
	}
	of := c.program(spec)
	if proxyContainer(spec) == nil && of == nil {
		return
	}
	n.mu.Lock()
	defer n.mu.Unlock()
	p := n.pods[string(spec.UID)]
	if p == nil {
		if spec.DeletionTimestamp != nil {
			// It never ran here.
			if of == nil {
				go c.remove(spec)
			}
			return
		}
		p = newPod(n, c, spec)
		p.program = of
		n.pods[string(spec.UID)] = p
		go p.run(ctx)
		return
	}
	p.update(spec)
	if spec.DeletionTimestamp != nil {
		p.end()
	}
}

// gone ends a pod that was deleted without grace.
func (n *node) gone(object any) {
	if last, ok := object.(cache.DeletedFinalStateUnknown); ok {
		object = last.Obj
	}
	spec, ok := object.(*corev1.Pod)
	if !ok {
		return
	}
	n.mu.Lock()
	defer n.mu.Unlock()
	if p := n.pods[string(spec.UID)]; p != nil {
		p.end()
	}
}

// forget removes a pod that has ended.
func (n *node) forget(p *pod) {
	n.mu.Lock()
	defer n.mu.Unlock()
	delete(n.pods, p.uid)
}

// all lists the pods.
func (n *node) all() []*pod {
	n.mu.Lock()
	defer n.mu.Unlock()
	pods := make([]*pod, 0, len(n.pods))
	for _, p := range n.pods {
		pods = append(pods, p)
	}
	return pods
}

// serveControl serves the requests of meshctl until ctx ends.
func (n *node) serveControl(ctx context.Context) error {
	_ = os.Remove(controlSocket) // of an earlier process
	listener, err := listenUnix(controlSocket)
	if err != nil {
		return err
	}
	server := &http.Server{Handler: n.control(), ReadHeaderTimeout: time.Minute}
	go func() {
		<-ctx.Done()
		_ = server.Close()
	}()
	if err := server.Serve(listener); ctx.Err() == nil {
		return err
	}
	return nil
}
