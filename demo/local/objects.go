package local

import (
	"context"
	"fmt"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/meshctl/meshctl/demo/kube"
)

// nodes of a cluster: two, one in each of two zones.
const nodes = 2

// auditPolicy omits the requests of the components, which are most of all, from
// the audit log: it is for those of users and meshctl.
func auditPolicy() string {
	return `apiVersion: audit.k8s.io/v1
kind: Policy
omitStages: [RequestReceived]
rules:
- level: None
  users:
  - system:apiserver
  - kube-controller-manager
  - system:kube-scheduler
  - kwok
  - system:serviceaccount:istio-system:istiod
  - system:serviceaccount:osm-system:osm
- level: None
  nonResourceURLs: ["/readyz*", "/livez*", "/healthz*"]
- level: Metadata
`
}

func regions() []string { return []string{"us-east-1", "us-west-2", "eu-central-1", "ap-south-1"} }

// nodeSet is the nodes of a cluster, and what runs on them.
type nodeSet struct{ *Cluster }

func nodesOf(c *Cluster) nodeSet { return nodeSet{c} }

func (c nodeSet) createNodes(ctx context.Context) error {
	client, err := c.Client()
	if err != nil {
		return err
	}
	for i := 1; i <= nodes; i++ {
		if err := client.Apply(ctx, c.node(i)); err != nil {
			return err
		}
	}
	what := fmt.Sprintf("cluster %s: waiting for its nodes", c.Name())
	return kube.Until(ctx, what, func(ctx context.Context) error {
		list, err := client.List(ctx, kube.Nodes(), "")
		if err != nil {
			return err
		}
		for _, node := range list {
			if !kube.Condition(&node, "Ready") {
				return fmt.Errorf("node %s is not ready", node.GetName())
			}
		}
		return nil
	})
}

// node returns a node with the capacity for many pods.
func (c nodeSet) node(i int) *unstructured.Unstructured {
	region := regions()[(c.state.Index-1)%len(regions())]
	name := fmt.Sprintf("%s-node-%d", c.Name(), i)
	addresses := []any{map[string]any{"type": "InternalIP", "address": fmt.Sprintf("198.51.100.%d", c.state.Index*16+i)}}
	status := map[string]any{}
	if c.state.RealProxies {
		// One kubelet serves all nodes.
		addresses = append(addresses, map[string]any{"type": "InternalDNS", "address": "localhost"},
			// Without one, kwok removes all addresses (its stage node-initialize).
			map[string]any{"type": "Hostname", "address": name})
		status["daemonEndpoints"] = map[string]any{"kubeletEndpoint": map[string]any{"Port": int64(c.port(kubelet))}}
	}
	room := map[string]any{"cpu": "256", "memory": "1Ti", "pods": "10000", "ephemeral-storage": "1Ti"}
	status["capacity"], status["allocatable"], status["addresses"] = room, room, addresses
	return &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "v1", "kind": "Node",
		"metadata": map[string]any{
			"name": name,
			"labels": map[string]any{
				"kubernetes.io/hostname":        name,
				"kubernetes.io/os":              "linux",
				"kubernetes.io/arch":            "amd64",
				"topology.kubernetes.io/region": region,
				"topology.kubernetes.io/zone":   fmt.Sprintf("%s%c", region, 'a'+i-1),
			},
		},
		"status": status,
	}}
}
