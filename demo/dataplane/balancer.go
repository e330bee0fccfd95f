package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log"
	"net"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/util/intstr"
)

// connection is a TCP connection.
type connection = net.Conn

// dialHost connects from the network namespace of the host.
func dialHost(ctx context.Context, address string) (connection, error) {
	return new(net.Dialer).DialContext(ctx, "tcp4", address)
}

// relay listens in the namespace until it is closed, and passes each connection on to
// one of dial.
func (n *namespace) relay(address string, dial func(context.Context) (connection, error)) (io.Closer, error) {
	listener, err := n.listen(address)
	if err != nil {
		return nil, err
	}
	go func() {
		for {
			from, err := listener.Accept()
			if errors.Is(err, net.ErrClosed) {
				return
			}
			if err != nil {
				log.Printf("relay at %s: %v", address, err)
				time.Sleep(probeEvery)
				continue
			}
			go pass(from, dial)
		}
	}()
	return listener, nil
}

// dialTimeout bounds the time to connect to a relay's target.
const dialTimeout = 10 * time.Second

func pass(from connection, dial func(context.Context) (connection, error)) {
	ctx, cancel := context.WithTimeout(context.Background(), dialTimeout)
	to, err := dial(ctx)
	cancel()
	if err != nil {
		// A reset, as of a host where nothing listens.
		if tcp, ok := from.(*net.TCPConn); ok {
			_ = tcp.SetLinger(0)
		}
		_ = from.Close()
		return
	}
	var both sync.WaitGroup
	for _, way := range [][2]connection{{from, to}, {to, from}} {
		both.Go(func() {
			_, err := io.Copy(way[1], way[0])
			if target, ok := way[1].(*net.TCPConn); ok && err == nil {
				_ = target.CloseWrite()
				return
			}
			_ = from.Close()
			_ = to.Close()
		})
	}
	both.Wait()
	_ = from.Close()
	_ = to.Close()
}

// balance plays the load balancers: it listens at the addresses of all Services of
// that type, in the networks of all clusters, and connects to their ready pods.
func (n *node) balance(ctx context.Context) {
	type place struct {
		address string
		cluster string
	}
	listening := map[place]bool{}
	tick := time.NewTicker(probeEvery)
	defer tick.Stop()
	for {
		for _, owner := range n.clusters {
			services, _ := owner.services.List(labels.Everything()) // from a cache: no error
			for _, s := range services {
				for _, ingress := range s.Status.LoadBalancer.Ingress {
					for _, p := range s.Spec.Ports {
						for _, reachable := range n.clusters {
							at := place{net.JoinHostPort(ingress.IP, strconv.Itoa(int(p.Port))), reachable.Name}
							if ingress.IP == "" || listening[at] {
								continue
							}
							listening[at] = true
							if err := n.publish(reachable, owner, s.Namespace, s.Name, p.Name, ingress.IP, at.address); err != nil {
								log.Printf("load balancer %s/%s at %s: %v", s.Namespace, s.Name, at.address, err)
							}
						}
					}
				}
			}
		}
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
	}
}

func (n *node) publish(in, owner *cluster, namespace, service, port, ip, address string) error {
	if err := in.network.addAddress(net.ParseIP(ip)); err != nil {
		return err
	}
	var turn atomic.Uint64
	_, err := in.network.relay(address, func(ctx context.Context) (connection, error) {
		backends, err := owner.backends(namespace, service, port)
		if err != nil {
			return nil, err
		}
		if len(backends) == 0 {
			return nil, fmt.Errorf("service %s/%s has no ready pod", namespace, service)
		}
		return owner.network.dial(ctx, "tcp4", backends[turn.Add(1)%uint64(len(backends))])
	})
	return err
}

// backends lists the addresses of the ready pods of a Service.
func (c *cluster) backends(namespace, name, portName string) ([]string, error) {
	service, err := c.services.Services(namespace).Get(name)
	if err != nil {
		return nil, err
	}
	pods, err := c.pods.Pods(namespace).List(labels.SelectorFromSet(service.Spec.Selector))
	if err != nil {
		return nil, err
	}
	var backends []string
	for _, p := range service.Spec.Ports {
		if p.Name != portName {
			continue
		}
		for _, pod := range pods {
			if target := targetPort(pod, p); target != 0 && isReady(pod) {
				backends = append(backends, net.JoinHostPort(pod.Status.PodIP, strconv.Itoa(target)))
			}
		}
	}
	return backends, nil
}

// targetPort is the number of a Service's port in a pod; 0 if the pod has none.
func targetPort(pod *corev1.Pod, port corev1.ServicePort) int {
	if port.TargetPort.Type == intstr.Int {
		if port.TargetPort.IntVal == 0 {
			return int(port.Port)
		}
		return int(port.TargetPort.IntVal)
	}
	for _, c := range pod.Spec.Containers {
		for _, p := range c.Ports {
			if p.Name == port.TargetPort.StrVal {
				return int(p.ContainerPort)
			}
		}
	}
	return 0
}

func isReady(pod *corev1.Pod) bool {
	for _, c := range pod.Status.Conditions {
		if c.Type == corev1.PodReady {
			return c.Status == corev1.ConditionTrue && pod.DeletionTimestamp == nil
		}
	}
	return false
}
