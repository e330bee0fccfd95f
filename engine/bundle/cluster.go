package bundle

import (
	"context"
	"fmt"
	"io"
	"path"
	"slices"
	"strings"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/meshctl/meshctl/engine/kube"
	"github.com/meshctl/meshctl/engine/snapshot"
)

// Cluster is a cluster to read.
type Cluster struct {
	// Name is that of its registration; Management if it is the management cluster.
	Name   string
	Client kube.Clientset
	// Namespace is where the management plane or its agent is; empty for all.
	Namespace string
}

// selector selects the pods of meshctl: those of agents and, in the management cluster, those of serve.
func (c *Cluster) selector() string {
	if c.Name == Management {
		return "app.kubernetes.io/name in (meshctl, meshctl-agent)"
	}
	return "app.kubernetes.io/name=meshctl-agent"
}

// Management is the name of the management cluster in a bundle.
const Management = "management"

// Limits bound what is read of logs.
type Limits struct {
	// Lines and Bytes are the most of each container.
	Lines, Bytes int64
	// Since is how far back logs go; 0 for all.
	Since time.Duration
	// Timeout bounds each request.
	Timeout time.Duration
}

// maxPods bounds the pods of a cluster whose logs are read, and maxEvents its events.
const (
	maxPods   = 50
	maxEvents = 1000
)

// AddCluster collects the states, events and logs of the management plane's pods in a cluster. What cannot be read is noted.
func (b *Bundle) AddCluster(ctx context.Context, c *Cluster, limits Limits) {
	bounded := func() (context.Context, context.CancelFunc) { return context.WithTimeout(ctx, limits.Timeout) }
	name := func(file string) string { return path.Join(c.Name, file) }
	miss := func(what string, err error) { b.Miss(what, c.label(), kube.Text(err)) }

	request, cancel := bounded()
	deployments, err := c.Client.AppsV1().Deployments(c.Namespace).List(request, metav1.ListOptions{LabelSelector: c.selector(), Limit: maxPods})
	cancel()
	if err != nil {
		miss("the Deployments", err)
	} else {
		b.AddYAML(name("deployments.yaml"), each(deployments.Items, deploymentOf))
	}
	request, cancel = bounded()
	pods, err := c.Client.CoreV1().Pods(c.Namespace).List(request, metav1.ListOptions{LabelSelector: c.selector(), Limit: maxPods})
	cancel()
	if err != nil {
		miss("the pods and their logs", err)
		pods = &corev1.PodList{}
	} else {
		b.AddYAML(name("pods.yaml"), each(pods.Items, podOf))
	}
	for _, namespace := range c.namespaces(pods.Items) {
		request, cancel = bounded()
		events, err := c.Client.CoreV1().Events(namespace).List(request, metav1.ListOptions{Limit: maxEvents})
		cancel()
		if err != nil {
			miss("the events of namespace "+namespace, err)
		} else {
			b.AddYAML(name("events-"+namespace+".yaml"), eventsOf(events.Items))
		}
		request, cancel = bounded()
		leases, err := c.Client.CoordinationV1().Leases(namespace).List(request, metav1.ListOptions{Limit: maxPods})
		cancel()
		if err != nil {
			miss("the Leases of namespace "+namespace, err)
		} else {
			b.AddYAML(name("leases-"+namespace+".yaml"), each(leases.Items, leaseOf))
		}
	}
	for i := range pods.Items {
		b.addLogs(ctx, c, &pods.Items[i], limits)
	}
	switch {
	case err == nil && len(pods.Items) == 0 && c.Name == Management:
		b.Miss("the logs of meshctl serve", "", "no pod of namespace "+c.Namespace+" is one of meshctl; add the log of where it runs")
	case len(pods.Items) == maxPods:
		b.Miss("other pods", c.label(), fmt.Sprintf("only %d pods were read", maxPods))
	}
}

// label is the name of a registered cluster, and empty for the management cluster.
func (c *Cluster) label() string {
	if c.Name == Management {
		return ""
	}
	return c.Name
}

// namespaces are those of the management plane and its pods, ascending.
func (c *Cluster) namespaces(pods []corev1.Pod) []string {
	var out []string
	if c.Namespace != "" {
		out = append(out, c.Namespace)
	}
	for i := range pods {
		if namespace := pods[i].Namespace; !slices.Contains(out, namespace) {
			out = append(out, namespace)
		}
	}
	slices.Sort(out)
	return out
}

// addLogs reads the logs of a pod's containers, and of those that they replaced.
func (b *Bundle) addLogs(ctx context.Context, c *Cluster, pod *corev1.Pod, limits Limits) {
	for _, s := range slices.Concat(pod.Status.InitContainerStatuses, pod.Status.ContainerStatuses) {
		file := path.Join(c.Name, "logs", pod.Namespace, pod.Name, s.Name)
		b.addLog(ctx, c, pod, s.Name, false, file+".log", limits)
		if s.RestartCount > 0 {
			b.addLog(ctx, c, pod, s.Name, true, file+".previous.log", limits)
		}
	}
}

func (b *Bundle) addLog(ctx context.Context, c *Cluster, pod *corev1.Pod, container string, previous bool, file string, limits Limits) {
	what := "the log of container " + container + " of pod " + pod.Namespace + "/" + pod.Name
	if previous {
		what += " before its last restart"
	}
	if b.room <= 0 {
		b.Miss(what, c.label(), "the bundle has no room left for it; allow more with --max-size")
		return
	}
	options := &corev1.PodLogOptions{Container: container, Previous: previous, TailLines: &limits.Lines, LimitBytes: &limits.Bytes}
	if limits.Since > 0 {
		seconds := int64(max(limits.Since.Round(time.Second), time.Second) / time.Second)
		options.SinceSeconds = &seconds
	}
	ctx, cancel := context.WithTimeout(ctx, limits.Timeout)
	defer cancel()
	stream, err := c.Client.CoreV1().Pods(pod.Namespace).GetLogs(pod.Name, options).Stream(ctx)
	if err != nil {
		b.Miss(what, c.label(), kube.Text(err))
		return
	}
	defer func() { _ = stream.Close() }()
	text, err := io.ReadAll(io.LimitReader(stream, limits.Bytes)) // a kubelet may not know the limit
	if err != nil {
		b.Miss("the end of "+what, c.label(), kube.Text(err))
	}
	cut := ""
	switch {
	case int64(len(text)) == limits.Bytes:
		cut = fmt.Sprintf("what is after its first %d bytes", limits.Bytes)
	case int64(strings.Count(string(text), "\n")) >= limits.Lines:
		cut = fmt.Sprintf("what is before its last %d lines", limits.Lines)
	}
	b.add(file, text, cut)
}

// Deployment, Pod, Event and Lease are what is collected of these objects: no environment, no argument and no annotation.
type (
	// Deployment is the state of a Deployment.
	Deployment struct {
		Namespace string            `json:"namespace"`
		Name      string            `json:"name"`
		Labels    map[string]string `json:"labels,omitempty"`
		Images    []string          `json:"images"`
		Wanted    int32             `json:"wanted"`
		Ready     int32             `json:"ready"`
		Updated   int32             `json:"updated"`
		// Conditions are sentences.
		Conditions []string `json:"conditions,omitempty"`
	}
	// Pod is the state of a pod.
	Pod struct {
		Namespace  string      `json:"namespace"`
		Name       string      `json:"name"`
		Node       string      `json:"node,omitempty"`
		Phase      string      `json:"phase"`
		Reason     string      `json:"reason,omitempty"`
		Created    metav1.Time `json:"created"`
		Conditions []string    `json:"conditions,omitempty"`
		Containers []Container `json:"containers"`
	}
	// Container is the state of a container.
	Container struct {
		Name     string                 `json:"name"`
		Image    string                 `json:"image"`
		Ready    bool                   `json:"ready"`
		Restarts int32                  `json:"restarts"`
		State    corev1.ContainerState  `json:"state"`
		Last     *corev1.ContainerState `json:"last,omitempty"`
	}
	// Event is an event.
	Event struct {
		Last    metav1.Time `json:"last"`
		Count   int32       `json:"count,omitempty"`
		Type    string      `json:"type"`
		Reason  string      `json:"reason"`
		Object  string      `json:"object"`
		Message string      `json:"message"`
	}
	// Lease is a Lease.
	Lease struct {
		Namespace string            `json:"namespace"`
		Name      string            `json:"name"`
		Holder    string            `json:"holder,omitempty"`
		Acquired  *metav1.MicroTime `json:"acquired,omitempty"`
		Renewed   *metav1.MicroTime `json:"renewed,omitempty"`
		Seconds   int32             `json:"seconds,omitempty"`
	}
)

func each[T, R any](items []T, of func(*T) R) []R {
	out := make([]R, len(items))
	for i := range items {
		out[i] = of(&items[i])
	}
	return out
}

func deploymentOf(d *appsv1.Deployment) Deployment {
	out := Deployment{Namespace: d.Namespace, Name: d.Name, Labels: d.Labels, Ready: d.Status.ReadyReplicas, Updated: d.Status.UpdatedReplicas}
	if d.Spec.Replicas != nil {
		out.Wanted = *d.Spec.Replicas
	}
	for i := range d.Spec.Template.Spec.Containers {
		out.Images = append(out.Images, d.Spec.Template.Spec.Containers[i].Image)
	}
	for _, c := range d.Status.Conditions {
		out.Conditions = append(out.Conditions, conditionText(string(c.Type), string(c.Status), c.Reason, c.Message))
	}
	return out
}

func conditionText(name, status, reason, message string) string {
	return name + " " + status + ": " + snapshot.Sentences(reason, message)
}

func podOf(p *corev1.Pod) Pod {
	out := Pod{
		Namespace: p.Namespace, Name: p.Name, Node: p.Spec.NodeName, Phase: string(p.Status.Phase),
		Reason: snapshot.Sentences(p.Status.Reason, p.Status.Message), Created: p.CreationTimestamp, Containers: []Container{},
	}
	for _, c := range p.Status.Conditions {
		out.Conditions = append(out.Conditions, conditionText(string(c.Type), string(c.Status), c.Reason, c.Message))
	}
	for _, s := range slices.Concat(p.Status.InitContainerStatuses, p.Status.ContainerStatuses) {
		container := Container{Name: s.Name, Image: s.Image, Ready: s.Ready, Restarts: s.RestartCount, State: s.State}
		if s.LastTerminationState != (corev1.ContainerState{}) {
			last := s.LastTerminationState
			container.Last = &last
		}
		out.Containers = append(out.Containers, container)
	}
	return out
}

// eventsOf are the events, the latest last.
func eventsOf(events []corev1.Event) []Event {
	out := make([]Event, len(events))
	for i := range events {
		e := &events[i]
		last := e.LastTimestamp
		if last.IsZero() {
			last = metav1.NewTime(e.EventTime.Time)
		}
		out[i] = Event{
			Last: last, Count: e.Count, Type: e.Type, Reason: e.Reason, Message: e.Message,
			Object: e.InvolvedObject.Kind + " " + e.InvolvedObject.Name,
		}
	}
	slices.SortStableFunc(out, func(a, b Event) int { return a.Last.Compare(b.Last.Time) })
	return out
}

func leaseOf(l *coordinationv1.Lease) Lease {
	out := Lease{Namespace: l.Namespace, Name: l.Name, Acquired: l.Spec.AcquireTime, Renewed: l.Spec.RenewTime}
	if l.Spec.HolderIdentity != nil {
		out.Holder = *l.Spec.HolderIdentity
	}
	if l.Spec.LeaseDurationSeconds != nil {
		out.Seconds = *l.Spec.LeaseDurationSeconds
	}
	return out
}
