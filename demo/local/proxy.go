package local

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/meshctl/meshctl/demo/kube"
)

// xdsTimeout bounds the time to get a complete configuration on a busy machine.
const xdsTimeout = "--timeout=5m"

// istioProxy is the container of an Istio proxy.
const istioProxy = "istio-proxy"

// Proxy gets the configuration that the control plane sends to the proxy of a pod.
// The identity of the proxy is read from the pod: for Istio from the arguments and
// the environment of its container, like the agent in the pod does, for Open
// Service Mesh from a label. It is JSON, as the role xds of the helper binary writes it and package
// engine/envoy parses it.
//
// It returns when the configuration has everything that it refers to. It may not
// have the latest changes in the API server yet; in that case, call it again.
func (c *Cluster) Proxy(ctx context.Context, namespace, pod string) ([]byte, error) {
	client, err := c.Client()
	if err != nil {
		return nil, err
	}
	found, err := client.Get(ctx, kube.Pods(), namespace, pod)
	if err != nil {
		return nil, err
	}
	if found.GetLabels()[osmProxyLabel] != "" {
		return osmOn(c).osmProxy(ctx, client, found)
	}
	node, metadata, err := istioNode(found)
	if err != nil {
		return nil, fmt.Errorf("cluster %s: pod %s/%s: %w", c.Name(), namespace, pod, err)
	}
	return c.helperOutput(ctx, nil, "xds", xdsTimeout, "--address="+c.address("istiod-grpc"), "--node="+node, "--metadata="+metadata)
}

// istioNode returns the node id and the metadata of the proxy in a pod.
func istioNode(pod *unstructured.Unstructured) (id, metadata string, err error) {
	container := proxyContainer(pod)
	if container == nil {
		return "", "", errors.New("it has no container " + istioProxy)
	}
	args, _, _ := unstructured.NestedStringSlice(container, "args")
	if len(args) < 2 || args[0] != "proxy" {
		return "", "", fmt.Errorf("the arguments of its %s do not begin with proxy and a role", istioProxy)
	}
	ip, _, _ := unstructured.NestedString(pod.Object, "status", "podIP")
	if ip == "" {
		return "", "", errors.New("it has no address yet")
	}
	account, _, _ := unstructured.NestedString(pod.Object, "spec", "serviceAccountName")
	nodeName, _, _ := unstructured.NestedString(pod.Object, "spec", "nodeName")
	image, _, _ := unstructured.NestedString(container, "image")
	values := map[string]any{
		"NAME": pod.GetName(), "NAMESPACE": pod.GetNamespace(), "NODE_NAME": nodeName, "SERVICE_ACCOUNT": account,
		"INSTANCE_IPS": ip, "LABELS": pod.GetLabels(), "ISTIO_VERSION": image[strings.LastIndex(image, ":")+1:],
	}
	environment, _, _ := unstructured.NestedSlice(container, "env")
	for _, one := range environment {
		variable, _ := one.(map[string]any)
		name, _ := variable["name"].(string)
		// A variable without a value gets it from a field that is already set.
		if key, ok := strings.CutPrefix(name, "ISTIO_META_"); ok && variable["value"] != nil {
			values[key] = variable["value"]
		}
	}
	data, err := json.Marshal(values)
	if err != nil {
		return "", "", err
	}
	namespace := pod.GetNamespace()
	return fmt.Sprintf("%s~%s~%s.%s~%s.svc.cluster.local", args[1], ip, pod.GetName(), namespace, namespace), string(data), nil
}

// proxyContainer finds the sidecar, which may be an init container.
func proxyContainer(pod *unstructured.Unstructured) map[string]any {
	for _, field := range []string{"containers", "initContainers"} {
		containers, _, _ := unstructured.NestedSlice(pod.Object, "spec", field)
		for _, one := range containers {
			if container, ok := one.(map[string]any); ok && container["name"] == istioProxy {
				return container
			}
		}
	}
	return nil
}
