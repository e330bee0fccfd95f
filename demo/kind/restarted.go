package kind

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	typed "k8s.io/client-go/kubernetes/typed/discovery/v1"

	"github.com/meshctl/meshctl/demo/kube"
)

// WaitPods waits until a namespace has its pods again, after its node was started. Before the kubelet has started them, the API server
// says that they are ready, and has the addresses that they had: what is sent there reaches whichever pod has one of them now.
func (c *Cluster) WaitPods(ctx context.Context, namespace string) error {
	name, _ := c.Node(ctx)
	out, err := c.engine.run(ctx, nil, "container", "inspect", "--format", "{{json .State.StartedAt}}", name)
	if err != nil {
		return err
	}
	var begin time.Time
	if err := json.Unmarshal(out, &begin); err != nil {
		return fmt.Errorf("node %s: when it started: %w", name, err)
	}
	pods, config, err := c.core()
	if err != nil {
		return err
	}
	discovery, err := typed.NewForConfig(config)
	if err != nil {
		return fmt.Errorf("cluster %s: %w", c.name, err)
	}
	return kube.Until(ctx, fmt.Sprintf("cluster %s: waiting for the pods of namespace %s to start again", c.name, namespace), func(ctx context.Context) error {
		all, err := pods.Pods(namespace).List(ctx, metav1.ListOptions{})
		if err != nil {
			return err
		}
		endpoints, err := discovery.EndpointSlices(namespace).List(ctx, metav1.ListOptions{})
		if err != nil {
			return err
		}
		addresses := map[string]string{}
		var errs []error
		for i := range all.Items {
			pod := &all.Items[i]
			addresses[pod.Name] = pod.Status.PodIP
			errs = append(errs, startedSince(pod, begin))
		}
		for i := range endpoints.Items {
			for _, e := range endpoints.Items[i].Endpoints {
				if e.TargetRef != nil && e.TargetRef.Kind == "Pod" && !isAt(e.Addresses, addresses[e.TargetRef.Name]) {
					errs = append(errs, fmt.Errorf("EndpointSlice %s has pod %s at %v, which is not its address", endpoints.Items[i].Name, e.TargetRef.Name, e.Addresses))
				}
			}
		}
		return errors.Join(errs...)
	})
}

// startedSince returns an error if what is said of a pod is from before its node was started.
func startedSince(pod *corev1.Pod, begin time.Time) error {
	for _, of := range pod.Status.ContainerStatuses {
		// Kubernetes stores whole seconds.
		if of.State.Running != nil && of.State.Running.StartedAt.Time.Before(begin.Truncate(time.Second)) {
			return fmt.Errorf("pod %s: container %s has not started since", pod.Name, of.Name)
		}
	}
	return nil
}

// isAt reports whether an endpoint has the address of a pod. One of another family than the pod's first address is not compared.
func isAt(addresses []string, pod string) bool {
	isV6 := func(address string) bool { return strings.Contains(address, ":") }
	return slices.ContainsFunc(addresses, func(a string) bool { return a == pod || isV6(a) != isV6(pod) })
}
