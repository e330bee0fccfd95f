package registration

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/util/wait"
)

// await waits until all replicas run what was installed.
func (i *installation) await(ctx context.Context) error {
	last := ""
	err := wait.PollUntilContextTimeout(ctx, time.Second, i.Wait, true, func(ctx context.Context) (bool, error) {
		d, err := i.server.clientset.AppsV1().Deployments(i.Namespace).Get(ctx, ServeName, metav1.GetOptions{})
		if err != nil {
			return false, fmt.Errorf("%s: reading Deployment %s/%s: %w", i.server.label, i.Namespace, ServeName, err)
		}
		now, done := rolledOut(d)
		if done {
			return true, nil
		}
		if why := i.server.troubles(ctx, i.Namespace); why != "" {
			now += "; " + why
		}
		if now != last {
			i.Progress(now)
			last = now
		}
		return false, nil
	})
	if wait.Interrupted(err) && ctx.Err() == nil {
		return fmt.Errorf("Deployment %s/%s is written, and its pods are not ready after %s: %s; `kubectl -n %s describe pods -l %s=%s` says more",
			i.Namespace, ServeName, i.Wait, last, i.Namespace, nameLabel, ServeName)
	}
	return err
}

// rolledOut reports whether all replicas of a Deployment are new and ready, and says how many are
// (kubernetes.io: Deployment status).
func rolledOut(d *appsv1.Deployment) (string, bool) {
	want := int32(1)
	if d.Spec.Replicas != nil {
		want = *d.Spec.Replicas
	}
	s := d.Status
	current := s.ObservedGeneration >= d.Generation
	if current && s.UpdatedReplicas >= want && s.Replicas == s.UpdatedReplicas && s.ReadyReplicas >= want {
		return "", true
	}
	if !current {
		s = appsv1.DeploymentStatus{}
	}
	return fmt.Sprintf("%d of %d replicas are ready", min(s.ReadyReplicas, s.UpdatedReplicas), want), false
}

// troubles says why pods of serve do not run; empty if that is not known.
func (s *server) troubles(ctx context.Context, namespace string) string {
	pods, err := s.clientset.CoreV1().Pods(namespace).List(ctx, metav1.ListOptions{LabelSelector: labels.FormatLabels(selected())})
	if err != nil {
		return "" // the caller may not list pods; the Deployment says how many run
	}
	var why []string
	for n := range pods.Items {
		if text := trouble(&pods.Items[n]); text != "" && !slices.Contains(why, text) {
			why = append(why, text)
		}
	}
	slices.Sort(why)
	return strings.Join(why, "; ")
}

func trouble(pod *corev1.Pod) string {
	for _, c := range pod.Status.ContainerStatuses {
		if w := c.State.Waiting; w != nil && w.Reason != "ContainerCreating" {
			return strings.TrimSpace(w.Reason + ": " + w.Message)
		}
		if t := c.LastTerminationState.Terminated; t != nil && !c.Ready {
			return fmt.Sprintf("it ended with exit code %d (%s)", t.ExitCode, t.Reason)
		}
	}
	for _, c := range pod.Status.Conditions {
		if c.Type == corev1.PodScheduled && c.Status == corev1.ConditionFalse {
			return "not scheduled: " + c.Message
		}
	}
	return ""
}
