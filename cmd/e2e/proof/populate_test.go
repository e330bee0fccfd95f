package proof

import (
	"context"
	"fmt"
	"os"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/meshctl/meshctl/demo/kube"
	"github.com/meshctl/meshctl/demo/local"
	"github.com/meshctl/meshctl/demo/manifests"
)

// populate installs Istio, the book shop of the demo, and the objects in
// testdata/clusters.
func populate(ctx context.Context, c *local.Cluster) error {
	if err := c.InstallIstio(ctx, local.IstioOptions{TrustDomain: c.Name() + ".example"}); err != nil {
		return err
	}
	client, err := c.Client()
	if err != nil {
		return err
	}
	bookinfo, err := manifests.Bookinfo(c.Name())
	if err != nil {
		return err
	}
	shop, err := os.ReadFile("testdata/clusters/" + c.Name() + ".yaml")
	if err != nil {
		return err
	}
	if err := client.ApplyYAML(ctx, slices.Concat(bookinfo, []byte("\n---\n"), shop)); err != nil {
		return err
	}
	if err := assignAddresses(ctx, c, client); err != nil {
		return err
	}
	for _, namespace := range namespaces[:len(namespaces)-1] {
		if err := client.WaitInjected(ctx, namespace); err != nil {
			return err
		}
	}
	return addIPv6(ctx, c, client)
}

// addIPv6 gives a pod of the cart an IPv6 address like in a dual-stack cluster;
// these clusters have IPv4 only.
func addIPv6(ctx context.Context, c *local.Cluster, client *kube.Client) error {
	pods, err := client.List(ctx, kube.Pods(), "shop")
	if err != nil {
		return err
	}
	at := slices.IndexFunc(pods, func(pod unstructured.Unstructured) bool { return pod.GetLabels()["app"] == "cart" })
	address := fmt.Sprintf("2001:db8:%s::7", c.Name()[len("cluster-"):])
	first, _, err := unstructured.NestedString(pods[at].Object, "status", "podIP")
	if err != nil {
		return err
	}
	if err := client.ApplyStatus(ctx, &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "v1", "kind": "Pod", "metadata": map[string]any{"namespace": "shop", "name": pods[at].GetName()},
		"status": map[string]any{"podIPs": []any{map[string]any{"ip": first}, map[string]any{"ip": address}}},
	}}); err != nil {
		return err
	}
	port := func(name string, number int) map[string]any {
		return map[string]any{"name": name, "port": number, "protocol": "TCP"}
	}
	return client.Apply(ctx, &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "discovery.k8s.io/v1", "kind": "EndpointSlice", "addressType": "IPv6",
		"metadata": map[string]any{"namespace": "shop", "name": "cart-ipv6", "labels": map[string]any{
			"kubernetes.io/service-name": "cart", "endpointslice.kubernetes.io/managed-by": "proof",
		}},
		"ports": []any{port("http", 8080), port("grpc", 9000), port("admin", 9091), port("tcp-events", 17000), port("https", 8443)},
		"endpoints": []any{map[string]any{
			"addresses":  []any{address},
			"conditions": map[string]any{"ready": true}, "nodeName": pods[at].Object["spec"].(map[string]any)["nodeName"],
			"targetRef": map[string]any{"kind": "Pod", "namespace": "shop", "name": pods[at].GetName()},
		}},
	}})
}

// namespaces with proxies; in the last one, only gateways have one.
var namespaces = []string{"bookinfo", "shop", "edge", "istio-system"}

// assignAddresses gives the east-west gateways every kind of address that a load
// balancer has, and nodes an address for node ports.
func assignAddresses(ctx context.Context, c *local.Cluster, client *kube.Client) error {
	addresses := map[string][]any{
		"cluster-1": {map[string]any{"hostname": "east.cluster-1.example.com"}},
		"cluster-2": {map[string]any{"ip": "192.0.2.40"}, map[string]any{"ip": "2001:db8::40"}},
	}
	for i := 1; i <= 2; i++ {
		if err := client.ApplyStatus(ctx, &unstructured.Unstructured{Object: map[string]any{
			"apiVersion": "v1", "kind": "Node", "metadata": map[string]any{"name": fmt.Sprintf("%s-node-%d", c.Name(), i)},
			"status": map[string]any{"addresses": []any{map[string]any{"type": "ExternalIP", "address": fmt.Sprintf("203.0.113.%d", i)}}},
		}}); err != nil {
			return err
		}
	}
	return client.ApplyStatus(ctx, &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "v1", "kind": "Service",
		"metadata": map[string]any{"namespace": "istio-system", "name": "istio-eastwestgateway"},
		"status":   map[string]any{"loadBalancer": map[string]any{"ingress": addresses[c.Name()]}},
	}})
}

// findProxies finds one sidecar of each service, and the gateways.
func (w *environment) findProxies(ctx context.Context, t *testing.T, c *local.Cluster) {
	t.Helper()
	client, err := c.Client()
	require.NoError(t, err)
	nodes, err := client.List(ctx, kube.Nodes(), "")
	require.NoError(t, err)
	zones := map[string]string{}
	for _, node := range nodes {
		zones[node.GetName()] = node.GetLabels()["topology.kubernetes.io/zone"]
	}
	for _, namespace := range namespaces {
		pods, err := client.List(ctx, kube.Pods(), namespace)
		require.NoError(t, err)
		for _, pod := range pods {
			labels := pod.GetLabels()
			gateway := isGateway(labels)
			seen := slices.ContainsFunc(w.proxies, func(p proxy) bool {
				return p.cluster == c.Name() && p.namespace == namespace && p.labels["app"] == labels["app"]
			})
			if !seen && (gateway || labels["version"] == "v1") {
				node, _, _ := unstructured.NestedString(pod.Object, "spec", "nodeName")
				w.proxies = append(w.proxies, proxy{
					cluster: c.Name(), namespace: namespace, pod: pod.GetName(), labels: labels, gateway: gateway, zone: zones[node],
				})
			}
		}
	}
}
