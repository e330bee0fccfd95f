package kube

import (
	"context"
	"errors"
	"fmt"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// sidecar is the container that istiod injects.
const sidecar = "istio-proxy"

// WaitInjected waits until every Deployment of the namespace has all its pods
// running, each with its sidecar.
func (c *Client) WaitInjected(ctx context.Context, namespace string) error {
	what := fmt.Sprintf("cluster %s: waiting for the pods of namespace %s", c.name, namespace)
	return Until(ctx, what, func(ctx context.Context) error {
		pods, err := c.deployed(ctx, namespace)
		if err != nil {
			return err
		}
		for _, pod := range pods {
			if !hasSidecar(&pod) {
				return Final(fmt.Errorf("pod %s has no container %s: the namespace is not injected", pod.GetName(), sidecar))
			}
		}
		return nil
	})
}

// WaitDeployments waits until every Deployment of the namespace has all its pods running.
func (c *Client) WaitDeployments(ctx context.Context, namespace string) error {
	what := fmt.Sprintf("cluster %s: waiting for the pods of namespace %s", c.name, namespace)
	return Until(ctx, what, func(ctx context.Context) error {
		_, err := c.deployed(ctx, namespace)
		return err
	})
}

// deployed returns the pods of a namespace, if all those of its Deployments are ready. The error
// says what keeps one from running.
func (c *Client) deployed(ctx context.Context, namespace string) ([]unstructured.Unstructured, error) {
	deployments, err := c.List(ctx, Deployments(), namespace)
	if err != nil {
		return nil, err
	}
	pods, err := c.List(ctx, Pods(), namespace)
	if err != nil {
		return nil, err
	}
	for _, d := range deployments {
		want, _, _ := unstructured.NestedInt64(d.Object, "spec", "replicas")
		ready, _, _ := unstructured.NestedInt64(d.Object, "status", "readyReplicas")
		if ready < want {
			return nil, errors.Join(fmt.Errorf("deployment %s: %d of %d pods ready", d.GetName(), ready, want), stuck(pods))
		}
	}
	return pods, nil
}

// stuck says which image cannot be pulled, which is final: Kubernetes has tried it twice then.
func stuck(pods []unstructured.Unstructured) error {
	for _, pod := range pods {
		for _, field := range []string{"initContainerStatuses", "containerStatuses"} {
			statuses, _, _ := unstructured.NestedSlice(pod.Object, "status", field)
			for _, one := range statuses {
				status, ok := one.(map[string]any)
				if !ok {
					continue
				}
				if reason, _, _ := unstructured.NestedString(status, "state", "waiting", "reason"); reason == "ImagePullBackOff" {
					message, _, _ := unstructured.NestedString(status, "state", "waiting", "message")
					return Final(fmt.Errorf("pod %s: image %v cannot be pulled: %s", pod.GetName(), status["image"], message))
				}
			}
		}
	}
	return nil
}

// hasSidecar looks in both places: a container, or an init container that keeps
// running (a native sidecar).
func hasSidecar(pod *unstructured.Unstructured) bool {
	for _, field := range []string{"containers", "initContainers"} {
		containers, _, _ := unstructured.NestedSlice(pod.Object, "spec", field)
		for _, one := range containers {
			if container, ok := one.(map[string]any); ok && container["name"] == sidecar {
				return true
			}
		}
	}
	return false
}

// ReadyContainers returns the numbers of kubectl's column READY: the ready
// containers, and all containers that keep running.
func ReadyContainers(pod *unstructured.Unstructured) string {
	ready, total := 0, 0
	count := func(specField, statusField string, counts func(map[string]any) bool) {
		lasting := map[string]bool{}
		specs, _, _ := unstructured.NestedSlice(pod.Object, "spec", specField)
		for _, one := range specs {
			if container, ok := one.(map[string]any); ok && counts(container) {
				name, _ := container["name"].(string)
				lasting[name] = true
				total++
			}
		}
		statuses, _, _ := unstructured.NestedSlice(pod.Object, "status", statusField)
		for _, one := range statuses {
			if status, ok := one.(map[string]any); ok && status["ready"] == true {
				if name, _ := status["name"].(string); lasting[name] {
					ready++
				}
			}
		}
	}
	count("containers", "containerStatuses", func(map[string]any) bool { return true })
	count("initContainers", "initContainerStatuses", func(c map[string]any) bool { return c["restartPolicy"] == "Always" })
	return fmt.Sprintf("%d/%d", ready, total)
}

// LoadBalancerAddresses returns the addresses of the LoadBalancer Services of a
// namespace by Service name.
func (c *Client) LoadBalancerAddresses(ctx context.Context, namespace string) (map[string]string, error) {
	services, err := c.List(ctx, resource("", "v1", "services"), namespace)
	if err != nil {
		return nil, err
	}
	addresses := map[string]string{}
	for _, service := range services {
		ingress, _, _ := unstructured.NestedSlice(service.Object, "status", "loadBalancer", "ingress")
		if len(ingress) == 0 {
			continue
		}
		if first, ok := ingress[0].(map[string]any); ok {
			addresses[service.GetName()], _ = first["ip"].(string)
		}
	}
	return addresses, nil
}
