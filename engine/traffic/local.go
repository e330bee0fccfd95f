package traffic

import (
	"cmp"
	"fmt"
	"net/netip"
	"slices"

	corev1 "k8s.io/api/core/v1"

	"github.com/meshctl/meshctl/engine/snapshot"
)

// LocalPod is a pod whose proxy is read by who is in the same cluster, at its address.
type LocalPod struct {
	Proxy Proxy
	// Address is that of the pod.
	Address netip.Addr
	// Account is the name of its ServiceAccount.
	Account string
	Stats   *snapshot.ProxyStats
	// Secure is the port that serves the same by mutual TLS; 0 if none does.
	Secure uint16
	// Why it cannot be read there, as the end of a sentence; empty if it can.
	Why string
}

// LocalPods are the running pods of a cluster that have a proxy which counts, ascending by namespace and name. Unlike Look, it knows no meshes:
// a pod has a proxy if it has a container of its name.
func LocalPods(c *snapshot.Cluster, dialects []*snapshot.Dialect) []LocalPod {
	return localPods(c, dialects, func(netip.Addr) bool { return true })
}

// LocalPodAt is the one of LocalPods that has an address, or the first one of several; false if there is none. A cluster has many pods, and each
// connection of a proxy asks for its own.
func LocalPodAt(c *snapshot.Cluster, dialects []*snapshot.Dialect, at netip.Addr) (LocalPod, bool) {
	found := localPods(c, dialects, func(address netip.Addr) bool { return address == at })
	if len(found) == 0 {
		return LocalPod{}, false
	}
	return found[0], true
}

// localPods are those with an address that is wanted; that of a pod without one is the zero Addr.
func localPods(c *snapshot.Cluster, dialects []*snapshot.Dialect, wanted func(netip.Addr) bool) []LocalPod {
	var out []LocalPod
	users := map[netip.Addr]int{}
	for _, pod := range c.Pods {
		if pod.Status.Phase != corev1.PodRunning {
			continue
		}
		address, err := netip.ParseAddr(pod.Status.PodIP)
		if !wanted(address) {
			continue
		}
		if err == nil {
			users[address]++
		}
		for _, d := range dialects {
			if d == nil || d.Proxies == nil || d.Proxies.Stats == nil || !hasContainer(pod, d.Proxies.Container) {
				continue
			}
			at := LocalPod{Proxy: ProxyOf(c.Name, pod), Address: address, Account: cmp.Or(pod.Spec.ServiceAccountName, "default"), Stats: d.Proxies.Stats}
			if d.Proxies.Stats.Secure != nil {
				at.Secure = d.Proxies.Stats.Secure(pod)
			}
			switch {
			case err != nil:
				at.Why = "it has no address yet"
			case pod.Spec.HostNetwork:
				at.Why = "it has the address of its node, where another pod may answer"
			case !address.IsGlobalUnicast():
				at.Why = fmt.Sprintf("%s is no address of a pod", address)
			}
			out = append(out, at)
			break
		}
	}
	for i := range out {
		if at := &out[i]; at.Why == "" && users[at.Address] > 1 {
			at.Why = fmt.Sprintf("%d pods have the address %s", users[at.Address], at.Address)
		}
	}
	slices.SortFunc(out, func(a, b LocalPod) int {
		return cmp.Or(cmp.Compare(a.Proxy.Namespace, b.Proxy.Namespace), cmp.Compare(a.Proxy.Pod, b.Proxy.Pod))
	})
	return out
}
