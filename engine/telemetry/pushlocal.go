package telemetry

import (
	"fmt"
	"net/netip"
	"time"

	"github.com/meshctl/meshctl/engine/snapshot"
	"github.com/meshctl/meshctl/engine/traffic"
)

// AgentPort is where an agent takes what proxies send by themselves, as in Gloo Mesh.
const AgentPort = 9977

// silent is how long a proxy may send nothing: Istio's do so every 5 s, or as their annotation says, up to once a minute.
const silent = 90 * time.Second

// pushed has what a proxy sent by itself at a time wait to be sent on, if that is wanted.
func (l *Local) pushed(proxy traffic.Proxy, reading *traffic.Reading, at time.Time) {
	l.mu.Lock()
	wanted := l.wanted == traffic.Push
	if wanted {
		l.heard[proxy] = at
	}
	l.mu.Unlock()
	if wanted {
		l.put(&kept{Sent: Sent{Proxy: proxy, Parts: reading.Parts(at)}, at: at, size: reading.Size()})
	}
}

// lost notes a message of a proxy that was not taken.
func (l *Local) lost() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.dropped++
}

// awaits says of which pods nothing comes, and why that may be.
func (l *Local) awaits(now time.Time, c *snapshot.Cluster) {
	pods := traffic.LocalPods(c, l.options.Dialects)
	l.forget(pods)
	var missing []*traffic.LocalPod
	l.mu.Lock()
	for i := range pods {
		if last := l.heard[pods[i].Proxy]; now.Sub(last) > silent && now.Sub(l.since) > silent {
			missing = append(missing, &pods[i])
		}
	}
	l.mu.Unlock()
	for _, pod := range missing {
		why := pod.Why
		if why == "" {
			why = fmt.Sprintf("its proxy sends nothing to port %d of the agent; the mesh's settings have to name the agent, and the pod has to be started after that", AgentPort)
		}
		l.put(&kept{Sent: Sent{
			Proxy: pod.Proxy, Reason: traffic.Failed, Detail: clip(fmt.Sprintf("pod %s/%s: %s", pod.Proxy.Namespace, pod.Proxy.Pod, why)),
		}, at: now})
	}
}

// podAt is the pod that has an address. One of several pods, or of a node, is nobody's.
func (l *Local) podAt(address netip.Addr) (*traffic.LocalPod, error) {
	c := l.options.Cluster()
	if c == nil || c.Frozen() {
		return nil, fmt.Errorf("%s: the cluster cannot be read now, so that it is not known which pod this is; it is asked again with the next connection", address)
	}
	pod, there := traffic.LocalPodAt(c, l.options.Dialects, address)
	switch {
	case !there:
		return nil, fmt.Errorf("%s: no pod with a proxy has this address", address)
	case pod.Why != "":
		return nil, fmt.Errorf("pod %s/%s: %s", pod.Proxy.Namespace, pod.Proxy.Pod, pod.Why)
	}
	return &pod, nil
}
