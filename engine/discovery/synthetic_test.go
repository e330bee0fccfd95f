package discovery_test

import (
	"fmt"
	"math/rand"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	endpointv1 "k8s.io/api/discovery/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/meshctl/meshctl/engine/discovery"
	"github.com/meshctl/meshctl/engine/discovery/clustertest"
	"github.com/meshctl/meshctl/engine/mesh/istio"
	"github.com/meshctl/meshctl/engine/snapshot"
)

// detectors are those of the clusters that package clustertest builds.
var detectors = discovery.Detectors{istio.Detector()}

func options() discovery.Options { return discovery.Options{Detectors: detectors} }

// manyServices is a cluster with n services of three workloads each second,
// in namespaces of 100, and as many ReplicaSets of the past.
func manyServices(n int) *snapshot.Cluster {
	b := clustertest.New("cluster-1")
	b.Istiod("default")
	for i := range 10 {
		b.Node(fmt.Sprintf("node-%d", i), map[string]string{
			corev1.LabelTopologyRegion: "us-east-1", corev1.LabelTopologyZone: fmt.Sprintf("us-east-1%c", 'a'+i%3),
		}, corev1.NodeAddress{Type: corev1.NodeExternalIP, Address: fmt.Sprintf("192.0.2.%d", i)})
	}
	for i := range n {
		namespace, app := fmt.Sprintf("ns-%03d", i/100), fmt.Sprintf("svc-%05d", i)
		s := b.Service(namespace, app, map[string]string{"app": app})
		var endpoints []endpointv1.Endpoint
		for v := range 1 + i%2*2 {
			version := fmt.Sprintf("v%d", v+1)
			d := b.Deployment(namespace, app+"-"+version, map[string]string{"app": app, "version": version, "team": "all"})
			b.ReplicaSets = append(b.ReplicaSets, &appsv1.ReplicaSet{ObjectMeta: metav1.ObjectMeta{
				Name: d.Name + "-past", Namespace: namespace, OwnerReferences: clustertest.Owner("apps/v1", "Deployment", d.Name),
			}})
			node := fmt.Sprintf("node-%d", (i+v)%10)
			p := b.Pod(d, d.Name+"-pod", node)
			endpoints = append(endpoints, clustertest.Endpoint(fmt.Sprintf("10.%d.%d.%d", v, i/256%256, i%256), p.Name, node))
		}
		b.Slice(s, app+"-s", endpointv1.AddressTypeIPv4, endpoints...)
	}
	return b.Cluster
}

// shuffled is a copy of c with every list in another order.
func shuffled(c *snapshot.Cluster, seed int64) *snapshot.Cluster {
	r := rand.New(rand.NewSource(seed))
	out := *c
	out.Deployments = shuffle(r, c.Deployments)
	out.DaemonSets = shuffle(r, c.DaemonSets)
	out.StatefulSets = shuffle(r, c.StatefulSets)
	out.ReplicaSets = shuffle(r, c.ReplicaSets)
	out.Pods = shuffle(r, c.Pods)
	out.Services = shuffle(r, c.Services)
	out.EndpointSlices = shuffle(r, c.EndpointSlices)
	out.Nodes = shuffle(r, c.Nodes)
	out.ConfigMaps = shuffle(r, c.ConfigMaps)
	return &out
}

func shuffle[T any](r *rand.Rand, list []T) []T {
	out := append([]T(nil), list...)
	r.Shuffle(len(out), func(i, j int) { out[i], out[j] = out[j], out[i] })
	return out
}

// copied is a deep copy of c.
func copied(c *snapshot.Cluster) *snapshot.Cluster {
	out := *c
	out.Deployments = copies(c.Deployments)
	out.DaemonSets = copies(c.DaemonSets)
	out.StatefulSets = copies(c.StatefulSets)
	out.ReplicaSets = copies(c.ReplicaSets)
	out.Pods = copies(c.Pods)
	out.Services = copies(c.Services)
	out.EndpointSlices = copies(c.EndpointSlices)
	out.Nodes = copies(c.Nodes)
	out.ConfigMaps = copies(c.ConfigMaps)
	return &out
}

func copies[T interface{ DeepCopy() T }](list []T) []T {
	var out []T
	for _, o := range list {
		out = append(out, o.DeepCopy())
	}
	return out
}
