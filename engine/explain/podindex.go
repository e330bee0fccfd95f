package explain

import (
	corev1 "k8s.io/api/core/v1"

	"github.com/meshctl/meshctl/engine/snapshot"
)

// podIndex finds the pods of a cluster by their addresses, in each namespace. Questions about one service then do not go through all
// pods of its namespace.
type podIndex map[string]*namespacePods

// namespacePods are those of a namespace.
type namespacePods struct {
	at map[string]*corev1.Pod
	// more are further pods with an address, in their order: those on the network of their node, and those that have ended.
	more map[string][]*corev1.Pod
}

func newPodIndex(c *snapshot.Cluster) podIndex {
	x := podIndex{}
	for from := 0; from < len(c.Pods); {
		namespace, to := c.Pods[from].Namespace, from
		for to < len(c.Pods) && c.Pods[to].Namespace == namespace {
			to++
		}
		of := &namespacePods{at: make(map[string]*corev1.Pod, to-from)}
		for _, p := range c.Pods[from:to] {
			of.add(p, p.Status.PodIP)
			for i := range p.Status.PodIPs {
				if ip := p.Status.PodIPs[i].IP; ip != p.Status.PodIP {
					of.add(p, ip)
				}
			}
		}
		x[namespace], from = of, to
	}
	return x
}

func (n *namespacePods) add(p *corev1.Pod, ip string) {
	if ip == "" {
		return
	}
	if n.at[ip] == nil {
		n.at[ip] = p
		return
	}
	if n.more == nil {
		n.more = map[string][]*corev1.Pod{}
	}
	n.more[ip] = append(n.more[ip], p)
}

// labels are those of the last pod of a namespace with an address that a selector selects; false if there is none.
func (x podIndex) labels(namespace, ip string, selector map[string]string) (map[string]string, bool) {
	n := x[namespace]
	if n == nil {
		return nil, false
	}
	more := n.more[ip]
	for i := len(more) - 1; i >= 0; i-- {
		if hasLabels(more[i].Labels, selector) {
			return more[i].Labels, true
		}
	}
	if p := n.at[ip]; p != nil && hasLabels(p.Labels, selector) {
		return p.Labels, true
	}
	return nil, false
}
