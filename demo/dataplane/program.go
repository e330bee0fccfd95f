package main

import (
	"context"
	"io"
	"log"
	"net"
	"os"
	"os/exec"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/labels"
)

// program is a process that runs as the pods with some labels: at their address, in
// the network of their cluster. It has no proxy, and kwok says that its pods are ready.
type program struct {
	Namespace string            `json:"namespace"`
	Labels    map[string]string `json:"labels"`
	Path      string            `json:"path"`
	Args      []string          `json:"args"`
	// Hosts are addresses of the host's loopback interface that it reaches, HOST:PORT.
	Hosts []string `json:"hosts"`
}

// runsAnnotation with the value application has a pod without a proxy run the demo's application alone: requests reach it past
// any mesh, and it sends them so.
const runsAnnotation = "demo.meshctl.io/runs"

// alone is the demo's application without a proxy.
var alone = &program{}

// program is that of a pod; nil if it has none.
func (c *cluster) program(spec *corev1.Pod) *program {
	if proxyContainer(spec) == nil && spec.Annotations[runsAnnotation] == "application" {
		return alone
	}
	for i := range c.Programs {
		if p := &c.Programs[i]; p.Namespace == spec.Namespace && labels.SelectorFromSet(p.Labels).Matches(labels.Set(spec.Labels)) {
			return p
		}
	}
	return nil
}

// startProgram creates the pod's folder and network, and starts its program.
func (p *pod) startProgram() error {
	for _, folder := range []string{p.folder, "logs"} {
		if err := os.MkdirAll(folder, 0o700); err != nil {
			return err
		}
	}
	network, err := p.cluster.network.attach(net.ParseIP(p.ip))
	if err != nil {
		return err
	}
	started := parts{network: network}
	for _, host := range p.program.Hosts {
		var l io.Closer
		if l, err = network.relay(host, func(ctx context.Context) (connection, error) { return dialHost(ctx, host) }); err != nil {
			for _, l := range started.listeners {
				_ = l.Close()
			}
			network.close()
			return err
		}
		started.listeners = append(started.listeners, l)
	}
	command := func() *exec.Cmd { return exec.Command(p.program.Path, p.program.Args...) }
	if p.program == alone {
		command = p.appCommand(p.object())
	}
	started.app = p.process("app", network, command)
	log.Printf("pod %s: its program runs at %s", p, p.ip)
	p.mu.Lock()
	defer p.mu.Unlock()
	p.parts, p.err = started, nil
	return nil
}

// waits returns when a pod is to end.
func (p *pod) waits(ctx context.Context) {
	select {
	case <-ctx.Done():
	case <-p.ending:
	}
}
