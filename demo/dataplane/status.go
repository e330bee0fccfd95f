package main

import (
	"context"
	"log"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/util/retry"
)

// report writes the status of a pod that runs.
func (c *cluster) report(ctx context.Context, spec *corev1.Pod, ready bool) error {
	return retry.RetryOnConflict(retry.DefaultBackoff, func() error {
		current, err := c.client.CoreV1().Pods(spec.Namespace).Get(ctx, spec.Name, getOptions)
		if apierrors.IsNotFound(err) || err == nil && current.UID != spec.UID {
			return nil // it was deleted, and another pod may have its name
		}
		if err != nil {
			return err
		}
		setStatus(current, ready)
		_, err = c.client.CoreV1().Pods(spec.Namespace).UpdateStatus(ctx, current, metav1.UpdateOptions{})
		return err
	})
}

func setStatus(spec *corev1.Pod, ready bool) {
	now := metav1.Now()
	status := &spec.Status
	status.Phase = corev1.PodRunning
	if status.StartTime == nil {
		status.StartTime = &now
	}
	for _, kind := range []corev1.PodConditionType{corev1.PodInitialized, corev1.ContainersReady, corev1.PodReady} {
		value := corev1.ConditionFalse
		if ready || kind == corev1.PodInitialized {
			value = corev1.ConditionTrue
		}
		setCondition(status, kind, value, now)
	}
	for _, gate := range spec.Spec.ReadinessGates {
		setCondition(status, gate.ConditionType, corev1.ConditionTrue, now)
	}
	status.ContainerStatuses = containers(spec.Spec.Containers, *status.StartTime, ready)
	status.InitContainerStatuses = containers(spec.Spec.InitContainers, *status.StartTime, ready)
}

func setCondition(status *corev1.PodStatus, kind corev1.PodConditionType, value corev1.ConditionStatus, now metav1.Time) {
	for i := range status.Conditions {
		c := &status.Conditions[i]
		if c.Type == kind {
			if c.Status != value {
				c.Status, c.LastTransitionTime = value, now
			}
			return
		}
	}
	status.Conditions = append(status.Conditions, corev1.PodCondition{Type: kind, Status: value, LastTransitionTime: now})
}

// containers are the states of the containers: an init container that does not
// keep running has ended.
func containers(specs []corev1.Container, started metav1.Time, ready bool) []corev1.ContainerStatus {
	statuses := make([]corev1.ContainerStatus, 0, len(specs))
	for _, s := range specs {
		status := corev1.ContainerStatus{Name: s.Name, Image: s.Image, Ready: ready, Started: &ready}
		status.State.Running = &corev1.ContainerStateRunning{StartedAt: started}
		if s.Name == "istio-init" {
			done := true
			status.Ready, status.Started = true, &done
			status.State = corev1.ContainerState{Terminated: &corev1.ContainerStateTerminated{Reason: "Completed", StartedAt: started, FinishedAt: started}}
		}
		statuses = append(statuses, status)
	}
	return statuses
}

// remove removes the object of a pod that has ended. It tries until the API server
// answers.
func (c *cluster) remove(spec *corev1.Pod) {
	now, uid := int64(0), spec.UID
	for {
		ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
		err := c.client.CoreV1().Pods(spec.Namespace).Delete(ctx, spec.Name, metav1.DeleteOptions{
			GracePeriodSeconds: &now, Preconditions: &metav1.Preconditions{UID: &uid},
		})
		cancel()
		if err == nil || apierrors.IsNotFound(err) || apierrors.IsConflict(err) {
			return
		}
		log.Printf("pod %s/%s/%s: removing it: %v", c.Name, spec.Namespace, spec.Name, err)
		time.Sleep(restartAfter)
	}
}
