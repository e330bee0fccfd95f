package explain

import (
	"testing"

	"github.com/stretchr/testify/assert"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/meshctl/meshctl/engine/snapshot"
)

// TestPodIndex: the index finds what going through all pods of a namespace finds.
func TestPodIndex(t *testing.T) {
	t.Parallel()
	c := &snapshot.Cluster{}
	pod := func(namespace, name, app string, ips ...string) {
		p := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name, Labels: map[string]string{"app": app, "name": name}}}
		if len(ips) > 0 {
			p.Status.PodIP = ips[0]
		}
		for _, ip := range ips {
			p.Status.PodIPs = append(p.Status.PodIPs, corev1.PodIP{IP: ip})
		}
		c.Pods = append(c.Pods, p)
	}
	pod("a", "other-namespace", "cart", "192.0.2.1")
	pod("b", "both-families", "cart", "192.0.2.1", "2001:db8::1")
	pod("b", "host-1", "cart", "192.0.2.9")
	pod("b", "host-2", "web", "192.0.2.9")
	pod("b", "host-3", "cart", "192.0.2.9")
	pod("b", "pending", "cart")
	index := newPodIndex(c)
	for _, namespace := range []string{"a", "b", "c"} {
		for _, selector := range []map[string]string{nil, {"app": "cart"}, {"app": "web"}, {"app": "none"}} {
			all := podsOf(c, namespace, selector)
			for _, ip := range []string{"192.0.2.1", "192.0.2.9", "2001:db8::1", "192.0.2.77"} {
				labels, found := index.labels(namespace, ip, selector)
				want, known := all[ip]
				assert.Equal(t, known, found, "%s %v %s", namespace, selector, ip)
				assert.Equal(t, want, labels, "%s %v %s", namespace, selector, ip)
			}
		}
	}
}

// TestGeneratedHosts: of several generated objects, the first one counts, as where all are gone through.
func TestGeneratedHosts(t *testing.T) {
	t.Parallel()
	hosts := generatedHosts{}
	ref := func(name string) snapshot.Ref {
		return snapshot.Ref{Kind: snapshot.ServiceEntry, Cluster: "west", Namespace: "istio-system", Name: name}
	}
	at := clusterKind{"west", snapshot.ServiceEntry}
	hosts[at] = &hostsOfKind{full: map[string]int{}, short: map[string]int{}}
	hosts[at].add(ref("first"), []string{"cart.shop.svc.east.global"})
	hosts[at].add(ref("second"), []string{"cart.shop.svc.east.global", "web.shop.svc.east.global"})
	beside := snapshot.Ref{Kind: snapshot.ServiceEntry, Cluster: "west", Namespace: "shop", Name: "by-hand"}
	assert.Equal(t, ref("first"), hosts.find(beside, []string{"cart.shop.svc.east.global"}))
	assert.Equal(t, ref("second"), hosts.find(beside, []string{"web.shop.svc.east.global", "none.example"}))
	assert.Equal(t, ref("first"), hosts.find(beside, []string{"web", "cart"}), "names of services of its namespace")
	assert.Equal(t, snapshot.Ref{}, hosts.find(beside, []string{"none.example"}))
	beside.Namespace = "other"
	assert.Equal(t, snapshot.Ref{}, hosts.find(beside, []string{"cart"}))
	beside.Kind = snapshot.VirtualService
	assert.Equal(t, snapshot.Ref{}, hosts.find(beside, []string{"cart.shop.svc.east.global"}))
}
