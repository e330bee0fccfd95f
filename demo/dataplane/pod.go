package main

import (
	"context"
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
)

// probeEvery is the time between two looks at a pod, restartAfter that from the end
// of one of its processes to the next start.
const (
	probeEvery   = 50 * time.Millisecond
	restartAfter = time.Second
)

// The proxy of a pod that is ready is probed less often, and may fail some times in a
// row, as a slow answer on a busy machine must not take the pod out of service.
const (
	readyProbeEvery   = time.Second
	readyProbeTimeout = 3 * time.Second
	failuresAllowed   = 3
)

// An application that was asked to end serves until no request has arrived for a
// while, at most drainLimit. drainTime is that of a proxy.
const (
	drainTime  = time.Second
	drainLimit = 10 * time.Second
)

// appSocket is where the application is controlled, in its working directory: only
// the kubelet reaches it.
const appSocket = "app.sock"

// pod is a pod that runs: a network namespace, an application unless it is a
// gateway, and a proxy; or a program alone.
type pod struct {
	node    *node
	cluster *cluster
	identity
	uid, ip string
	gateway bool
	// program is what runs in it; nil in one with a proxy.
	program *program
	// folder is the working directory of its processes.
	folder string

	// renewAt is when its token is replaced; only run uses it.
	renewAt time.Time

	ending chan struct{}
	once   sync.Once

	mu sync.Mutex
	parts
	spec  *corev1.Pod
	ready bool
	// err is why the pod does not run.
	err error
	// told is the fault that the application has.
	told obeyed
}

// parts are what runs of a pod: nothing before it has started.
type parts struct {
	network *namespace
	// app is the application, or a program.
	app, proxy *process
	// environment is that of the proxy's agent.
	environment []string
	// listeners are those of the kubelet in the network.
	listeners []io.Closer
}

func newPod(n *node, c *cluster, spec *corev1.Pod) *pod {
	return &pod{
		node: n, cluster: c, spec: spec, uid: string(spec.UID), ip: spec.Status.PodIP,
		identity: identity{Cluster: c.Name, Namespace: spec.Namespace, Workload: workloadName(spec), Pod: spec.Name},
		gateway:  proxyContainer(spec) != nil && isGateway(spec), folder: filepath.Join(podsDir, string(spec.UID)),
		ending: make(chan struct{}),
	}
}

func (p *pod) String() string { return p.Cluster + "/" + p.Namespace + "/" + p.Pod }

// update stores a newer version of the object.
func (p *pod) update(spec *corev1.Pod) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.spec = spec
}

func (p *pod) object() *corev1.Pod {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.spec
}

// running returns what runs of the pod now.
func (p *pod) running() parts {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.parts
}

// fail stores why the pod does not run.
func (p *pod) fail(err error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.err = err
}

// end asks the pod to end; it may be called several times.
func (p *pod) end() { p.once.Do(func() { close(p.ending) }) }

// run runs the pod until it is asked to end.
func (p *pod) run(ctx context.Context) {
	defer p.node.forget(p)
	for {
		err := p.start(ctx)
		if err == nil {
			break
		}
		log.Printf("pod %s: %v", p, err)
		p.fail(err)
		p.stop()
		select {
		case <-time.After(restartAfter):
		case <-p.ending:
			p.remove()
			return
		case <-ctx.Done():
			return
		}
	}
	if p.program == nil {
		p.probe(ctx)
	} else {
		p.waits(ctx)
	}
	p.terminate()
	p.stop()
	p.remove()
}

// remove removes the object of a pod with a proxy; kwok removes others.
func (p *pod) remove() {
	if p.program == nil {
		p.cluster.remove(p.object())
	}
}

// start creates the pod's folder and network and starts its processes.
func (p *pod) start(ctx context.Context) error {
	if p.program != nil {
		return p.startProgram()
	}
	spec := p.object()
	mesh, settings, err := p.cluster.mesh(ctx)
	if err != nil {
		return err
	}
	if err := p.writeFolder(ctx, spec, mesh); err != nil {
		return err
	}
	environment, err := p.agentEnvironment(spec, settings)
	if err != nil {
		return err
	}
	network, err := p.cluster.network.attach(net.ParseIP(p.ip))
	if err != nil {
		return err
	}
	names, err := p.node.resolve(p.cluster, network)
	if err != nil {
		network.close()
		return err
	}
	started := parts{network: network, environment: environment, listeners: []io.Closer{names}}
	if !p.gateway {
		if err := redirect(network, spec); err != nil {
			_ = names.Close()
			network.close()
			return err
		}
		started.app = p.process("app", network, p.appCommand(spec))
	}
	started.proxy = p.process("agent", network, func() *exec.Cmd {
		command := exec.Command("/proc/self/exe", p.agentArguments(spec)...)
		command.Env = environment
		return command
	})
	p.mu.Lock()
	defer p.mu.Unlock()
	p.parts, p.err = started, nil
	return nil
}

// appCommand runs the application on the ports of the pod's other containers.
func (p *pod) appCommand(spec *corev1.Pod) func() *exec.Cmd {
	http, tcp := appPorts(spec)
	return func() *exec.Cmd {
		_ = os.Remove(filepath.Join(p.folder, appSocket)) // of an earlier process
		command := exec.Command(p.node.Application, "demo", "app", "--cluster", p.Cluster, "--namespace", p.Namespace,
			"--workload", p.Workload, "--pod", p.Pod,
			"--control", appSocket, "--mark", strconv.Itoa(appMark), "--dns", strconv.Itoa(dnsPort))
		for flag, ports := range map[string]string{"--http": http, "--tcp": tcp} {
			if ports != "" {
				command.Args = append(command.Args, flag, ports)
			}
		}
		command.Env = []string{"GOMAXPROCS=1"}
		return command
	}
}

// probe keeps the object's status as the pod is, until the pod ends.
func (p *pod) probe(ctx context.Context) {
	client := &http.Client{
		Timeout: readyProbeTimeout,
		Transport: &http.Transport{DisableKeepAlives: true, DialContext: func(ctx context.Context, network, address string) (net.Conn, error) {
			return p.cluster.network.dial(ctx, network, address)
		}},
	}
	url := fmt.Sprintf("http://%s:%d/healthz/ready", p.ip, healthPort)
	proxy := p.running().proxy
	started, up, failures := false, false, 0
	var probed time.Time
	tick := time.NewTimer(0)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-p.ending:
			return
		case <-tick.C:
		}
		p.renewToken(ctx)
		fault := p.node.breaks.of(p.identity)
		obeys := p.obey(fault)
		if !up || time.Since(probed) > readyProbeEvery {
			probed = time.Now()
			if p.proxyReady(client, url) {
				up, failures = true, 0
			} else if failures++; failures > failuresAllowed || !proxy.running() {
				up = false
			}
		}
		ready := up && obeys && !fault.Unready
		p.mu.Lock()
		changed := ready != p.ready || !started
		p.mu.Unlock()
		if changed && (ready || started || proxy.running()) {
			if err := p.cluster.report(ctx, p.object(), ready); err != nil {
				log.Printf("pod %s: writing its status: %v", p, err)
			} else {
				started = true
				p.mu.Lock()
				p.ready = ready
				p.mu.Unlock()
			}
		}
		tick.Reset(probeEvery)
	}
}

// proxyReady asks the agent, which answers 200 when Envoy has its configuration.
func (p *pod) proxyReady(client *http.Client, url string) bool {
	response, err := client.Get(url)
	if err != nil {
		return false
	}
	defer func() { _ = response.Body.Close() }()
	return response.StatusCode == http.StatusOK
}

// terminate ends the processes of a pod that is being deleted. Its proxy asks callers to use other connections, and ends once no request
// arrives any more, which closes those that are left. The application ends last: callers hardly use some of the connections that they keep
// through a gateway, and are told only when they do, so that a request may come late, and must find an application where a proxy is.
func (p *pod) terminate() {
	r := p.running()
	if p.program != nil {
		r.app.terminate(drainLimit)
		return
	}
	if r.app != nil {
		if err := drain(r.network); err != nil {
			log.Printf("pod %s: draining its proxy: %v", p, err)
		}
		if err := p.quiet(); err != nil {
			log.Printf("pod %s: waiting for its last request: %v", p, err)
		}
	}
	r.proxy.terminate(drainTime)
	if r.app != nil {
		r.app.terminate(drainLimit + 2*drainTime)
	}
}

// quiet waits until the application has got no request for a while.
func (p *pod) quiet() error {
	client := &http.Client{
		Timeout:   drainLimit + 2*drainTime,
		Transport: &http.Transport{DisableKeepAlives: true, DialContext: p.dialApp},
	}
	response, err := client.Post("http://pod/quiet", "", nil)
	if err != nil {
		return err
	}
	return response.Body.Close()
}

// drain does what the proxy's container asks for before it ends, its preStop hook.
// Callers on the other side of a gateway keep their connections otherwise.
func drain(pod *namespace) error {
	client := &http.Client{
		Timeout:   drainTime,
		Transport: &http.Transport{DisableKeepAlives: true, DialContext: pod.dial},
	}
	response, err := client.Post(fmt.Sprintf("http://127.0.0.1:%d/drain", agentPort), "", nil)
	if err != nil {
		return err
	}
	defer func() { _ = response.Body.Close() }()
	if response.StatusCode != http.StatusOK {
		return fmt.Errorf("its agent answers %s", response.Status)
	}
	return nil
}

// stop ends all that is left of the pod.
func (p *pod) stop() {
	r := p.running()
	for _, process := range []*process{r.app, r.proxy} {
		if process != nil {
			process.terminate(0)
		}
	}
	for _, l := range r.listeners {
		_ = l.Close()
	}
	if r.network != nil {
		r.network.close()
	}
	if err := os.RemoveAll(p.folder); err != nil {
		log.Printf("pod %s: %v", p, err)
	}
}
