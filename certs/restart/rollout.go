package restart

import (
	"fmt"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// rollout is how far a controller has replaced its pods; the rules are those of `kubectl rollout status`
// (k8s.io/kubectl/pkg/polymorphichelpers/rollout_status.go).
type rollout struct {
	kind     string
	meta     *metav1.ObjectMeta
	template *metav1.ObjectMeta
	// observed: its controller has seen the latest template.
	observed bool
	// wanted, updated, available count pods; old are those left of the template before.
	wanted, updated, available, old int32
	// exceeded: its controller says that it does not progress. patience is how long that takes; 0 if it does not say.
	exceeded bool
	patience time.Duration
	// refuses says why a restart would do nothing; empty if it does.
	refuses string
}

func (r *rollout) id() string { return r.kind + " " + r.meta.Namespace + "/" + r.meta.Name }

func (r *rollout) complete() bool {
	return r.observed && r.updated >= r.wanted && r.old <= 0 && r.available >= r.wanted
}

// left is how much of a rollout there is to do. It becomes smaller while it progresses, and only then.
func (r *rollout) left() int32 {
	return max(r.wanted-r.updated, 0) + max(r.wanted-min(r.updated, r.available), 0) + max(r.old, 0)
}

// counts are what people see of a rollout.
func (r *rollout) counts() string {
	return fmt.Sprintf("%d of %d pods are new, %d available", r.updated, r.wanted, r.available)
}

func ofDeployment(d *appsv1.Deployment) *rollout {
	r := &rollout{
		kind: deployment, meta: &d.ObjectMeta, template: &d.Spec.Template.ObjectMeta,
		observed: d.Status.ObservedGeneration >= d.Generation, wanted: replicas(d.Spec.Replicas),
		updated: d.Status.UpdatedReplicas, available: d.Status.AvailableReplicas, old: d.Status.Replicas - d.Status.UpdatedReplicas,
	}
	for _, c := range d.Status.Conditions {
		if c.Type == appsv1.DeploymentProgressing && c.Status == corev1.ConditionFalse && c.Reason == "ProgressDeadlineExceeded" {
			r.exceeded = r.observed
		}
	}
	if seconds := d.Spec.ProgressDeadlineSeconds; seconds != nil {
		r.patience = time.Duration(*seconds) * time.Second
	}
	if d.Spec.Paused {
		r.refuses = "it is paused; resume it: kubectl rollout resume deployment/" + d.Name + " -n " + d.Namespace
	}
	return r
}

func ofDaemonSet(d *appsv1.DaemonSet) *rollout {
	r := &rollout{
		kind: daemonSet, meta: &d.ObjectMeta, template: &d.Spec.Template.ObjectMeta,
		observed: d.Status.ObservedGeneration >= d.Generation, wanted: d.Status.DesiredNumberScheduled,
		updated: d.Status.UpdatedNumberScheduled, available: d.Status.NumberAvailable,
	}
	if d.Spec.UpdateStrategy.Type == appsv1.OnDeleteDaemonSetStrategyType {
		r.refuses = onDelete
	}
	return r
}

const onDelete = "its update strategy is OnDelete; delete its pods yourself, one after the other"

func ofStatefulSet(s *appsv1.StatefulSet) *rollout {
	r := &rollout{
		kind: statefulSet, meta: &s.ObjectMeta, template: &s.Spec.Template.ObjectMeta,
		observed: s.Status.ObservedGeneration >= s.Generation, wanted: replicas(s.Spec.Replicas),
		updated: s.Status.UpdatedReplicas, available: min(s.Status.ReadyReplicas, s.Status.AvailableReplicas),
	}
	// Without changes, and at the end of a rollout, both revisions are the same, and the counts of the update may be 0.
	if s.Status.UpdateRevision == s.Status.CurrentRevision {
		r.updated = max(r.updated, s.Status.CurrentReplicas)
	}
	rolling := s.Spec.UpdateStrategy.RollingUpdate
	switch {
	case s.Spec.UpdateStrategy.Type == appsv1.OnDeleteStatefulSetStrategyType:
		r.refuses = onDelete
	case rolling != nil && rolling.Partition != nil && *rolling.Partition > 0:
		r.refuses = fmt.Sprintf("its update strategy leaves out the first %d pods (partition); set it to 0, or delete those pods yourself", *rolling.Partition)
	}
	return r
}

func replicas(n *int32) int32 {
	if n == nil {
		return 1
	}
	return *n
}
