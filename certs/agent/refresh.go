package agent

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/types"
)

// refreshEvery is between two times that a kubelet is asked for the same: it may not have seen the Secret yet when it was asked.
const refreshEvery = 10 * time.Second

// Refresh implements Restarter. A kubelet gives the containers of a pod what a Secret has now when it looks at the pod again: about
// once a minute, or at once when the pod has changed (https://kubernetes.io/docs/tasks/configure-pod-container/configure-pod-configmap,
// "Mounted ConfigMaps are updated automatically"). So each pod of the control plane gets an annotation with the time, for as long as
// something is waited for.
func (p *Parts) Refresh(ctx context.Context, target MeshTarget, waits bool) error {
	pods, err := p.Client.CoreV1().Pods(target.Namespace).List(ctx, metav1.ListOptions{LabelSelector: labels.SelectorFromSet(target.Labels).String()})
	if err != nil {
		return fmt.Errorf("pods of the control plane in namespace %s: %w", target.Namespace, err)
	}
	now := time.Now()
	var errs []error
	for i := range pods.Items {
		pod := &pods.Items[i]
		at, annotated := pod.Annotations[RefreshAnnotation]
		if pod.DeletionTimestamp != nil || !waits && !annotated || waits && refreshedSince(at, now.Add(-refreshEvery)) {
			continue
		}
		var value *string // null removes it
		if waits {
			text := now.UTC().Format(time.RFC3339)
			value = &text
		}
		if err := p.annotate(ctx, pod, value); err != nil && !apierrors.IsNotFound(err) {
			errs = append(errs, fmt.Errorf("pod %s/%s does not get Secret %s at once: %w", pod.Namespace, pod.Name, CACertsName, err))
		}
	}
	return errors.Join(errs...)
}

// refreshedSince reads the annotation. One that cannot be read, or is of a clock that is ahead, is written again.
func refreshedSince(text string, since time.Time) bool {
	at, err := time.Parse(time.RFC3339, text)
	return err == nil && at.After(since) && at.Before(since.Add(2*refreshEvery))
}

func (p *Parts) annotate(ctx context.Context, pod *corev1.Pod, value *string) error {
	patch, err := json.Marshal(map[string]any{"metadata": map[string]any{"annotations": map[string]*string{RefreshAnnotation: value}}})
	if err != nil { // strings only
		panic(err)
	}
	_, err = p.Client.CoreV1().Pods(pod.Namespace).Patch(ctx, pod.Name, types.MergePatchType, patch, metav1.PatchOptions{FieldManager: FieldManager})
	return err
}

// refresh has the control plane get the Secret at once that it waits for, and leaves nothing of that when it does not. An agent that may
// not ask for it notes that: the control plane gets the Secret all the same, in its time.
func (a *agent) refresh(ctx context.Context, f *facts) error {
	if a.options.Restarter == nil || f.mesh == nil {
		return nil
	}
	waits := f.mesh.ControlPlane.Done < f.mesh.ControlPlane.Total && !f.mesh.NeedsControlPlane
	err := a.options.Restarter.Refresh(ctx, f.target(), waits)
	if apierrors.IsForbidden(err) {
		f.mayNotRefresh = true
		return nil
	}
	return err
}
