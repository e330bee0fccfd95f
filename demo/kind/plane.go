package kind

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes/scheme"
	typed "k8s.io/client-go/kubernetes/typed/core/v1"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/remotecommand"
	"k8s.io/klog/v2"

	"github.com/meshctl/meshctl/demo/app"
	"github.com/meshctl/meshctl/demo/proxies"
)

// ErrNoFaults is returned by Break.
var ErrNoFaults = errors.New("only workloads of the local runtime can be broken; in a kind cluster, use kubectl: scale a Deployment to 0, or change its image")

// Plane sends requests as the workloads of clusters, from inside their pods.
type Plane struct{ clusters []*Cluster }

// NewPlane returns a plane of clusters.
func NewPlane(clusters ...*Cluster) *Plane { return &Plane{clusters} }

// Pods lists the pods that run the application, sorted by cluster, namespace and name.
func (p *Plane) Pods(ctx context.Context) ([]proxies.Pod, error) {
	var pods []proxies.Pod
	for _, c := range p.clusters {
		client, _, err := c.core()
		if err != nil {
			return nil, err
		}
		list, err := client.Pods(metav1.NamespaceAll).List(ctx, metav1.ListOptions{})
		if err != nil {
			return nil, fmt.Errorf("cluster %s: %w", c.name, err)
		}
		for i := range list.Items {
			pod := &list.Items[i]
			if container(pod) != "" && pod.DeletionTimestamp == nil {
				pods = append(pods, proxies.Pod{
					Identity: app.Identity{Cluster: c.name, Namespace: pod.Namespace, Workload: workload(pod), Pod: pod.Name},
					UID:      string(pod.UID), IP: pod.Status.PodIP, Ready: ready(pod), Error: pod.Status.Message,
				})
			}
		}
	}
	return pods, nil
}

// container is the name of the container with the application; empty if a pod has none.
func container(pod *corev1.Pod) string {
	for _, c := range pod.Spec.Containers {
		if len(c.Args) > 1 && c.Args[0] == "demo" && c.Args[1] == "app" {
			return c.Name
		}
	}
	return ""
}

// workload is the name of the Deployment of a pod.
func workload(pod *corev1.Pod) string {
	for _, owner := range pod.OwnerReferences {
		return strings.TrimSuffix(owner.Name, "-"+pod.Labels["pod-template-hash"])
	}
	return pod.Name
}

func ready(pod *corev1.Pod) bool {
	for _, c := range pod.Status.Conditions {
		if c.Type == corev1.PodReady {
			return c.Status == corev1.ConditionTrue
		}
	}
	return false
}

// Send sends requests as a pod, and passes the outcomes of each interval to report.
// When ctx ends, it stops without an error.
func (p *Plane) Send(ctx context.Context, from proxies.Pod, call app.Call, report func([]app.Outcome)) error {
	for _, c := range p.clusters {
		if c.name == from.Cluster {
			return c.send(ctx, from, call, report)
		}
	}
	return fmt.Errorf("pod %s: there is no cluster %s", from.Pod, from.Cluster)
}

// send has the binary in the pod send the requests, as only what runs there is the workload.
func (c *Cluster) send(ctx context.Context, from proxies.Pod, call app.Call, report func([]app.Outcome)) error {
	client, config, err := c.core()
	if err != nil {
		return err
	}
	pod, err := client.Pods(from.Namespace).Get(ctx, from.Pod, metav1.GetOptions{})
	if err != nil {
		return fmt.Errorf("cluster %s: %w", c.name, err)
	}
	request := client.RESTClient().Post().Resource("pods").Namespace(pod.Namespace).Name(pod.Name).SubResource("exec").
		VersionedParams(&corev1.PodExecOptions{
			Container: container(pod), Command: []string{"/meshctl", "demo", "send"}, Stdin: true, Stdout: true, Stderr: true,
		}, scheme.ParameterCodec)
	executor, err := remotecommand.NewWebSocketExecutor(config, "GET", request.URL().String())
	if err != nil {
		return fmt.Errorf("cluster %s: %w", c.name, err)
	}
	input, err := json.Marshal(call)
	if err != nil {
		return fmt.Errorf("pod %s: %w", from.Pod, err)
	}
	var said bytes.Buffer
	lines, write := io.Pipe()
	ended := make(chan error, 1)
	// Of an interruption, client-go would log that its streams are closed.
	quiet := klog.NewContext(ctx, klog.Logger{})
	go func() {
		err := executor.StreamWithContext(quiet, remotecommand.StreamOptions{Stdin: bytes.NewReader(input), Stdout: write, Stderr: &said})
		ended <- err
		_ = write.CloseWithError(err)
	}()
	decoder := json.NewDecoder(lines)
	for {
		var line app.Report
		if err = decoder.Decode(&line); err != nil {
			break
		}
		report(line.Groups)
	}
	_ = lines.Close()
	streamed := <-ended
	switch {
	case ctx.Err() != nil:
		return nil //nolint:nilerr // it was asked to stop
	case streamed != nil:
		return fmt.Errorf("pod %s of %s: sending requests: %w: %s", from.Pod, c.name, streamed, strings.TrimSpace(said.String()))
	case !errors.Is(err, io.EOF):
		return fmt.Errorf("pod %s of %s: sending requests: %w", from.Pod, c.name, err)
	}
	return nil
}

// Break returns ErrNoFaults.
func (p *Plane) Break(context.Context, app.Identity, proxies.Fault) error { return ErrNoFaults }

// core is a client of the API group core.
func (c *Cluster) core() (typed.CoreV1Interface, *rest.Config, error) {
	config, err := c.Config()
	if err != nil {
		return nil, nil, err
	}
	client, err := typed.NewForConfig(config)
	if err != nil {
		return nil, nil, fmt.Errorf("cluster %s: %w", c.name, err)
	}
	return client, config, nil
}
