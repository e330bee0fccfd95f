package discovery

import (
	"maps"
	"regexp"
	"strings"

	appsv1 "k8s.io/api/apps/v1"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/meshctl/meshctl/engine/snapshot"
)

// This file finds the owners of pods that are no Deployment, DaemonSet or StatefulSet: Rollouts of Argo, what operators define,
// Jobs, ReplicaSets of their own, and pods that nothing owns. Such objects are not read. What they are is said by the pods, and
// by the ReplicaSets between the two.

// owner names what owns pods.
type owner struct{ group, kind, namespace, name string }

const (
	cronJobKind = "CronJob"
	podKind     = "Pod"
)

// cronJobName is a Job of a CronJob, whose name ends in the minute for which it is (Kubernetes, pkg/controller/cronjob, getJobName).
// Istio tells the name of a workload from it, too (pkg/kube, GetWorkloadMetaFromPod).
var cronJobName = regexp.MustCompile(`^(.+)-\d{8,10}$`)

// ownerOfPod is what owns a pod; false if that is read, was not read yet, or is gone, and for pods that have ended or that only their
// node knows.
func ownerOfPod(pod *corev1.Pod, replicaSets map[key]*appsv1.ReplicaSet) (owner, bool) {
	if pod.Status.Phase == corev1.PodSucceeded || pod.Status.Phase == corev1.PodFailed {
		return owner{}, false
	}
	is, object := metav1.GetControllerOfNoCopy(pod), podKind
	name := pod.Name
	if is != nil && groupOf(is) == appsv1.GroupName && is.Kind == snapshot.ReplicaSet.String() {
		rs := replicaSets[key{pod.Namespace, is.Name}]
		if rs == nil {
			return owner{}, false
		}
		is, object, name = metav1.GetControllerOfNoCopy(rs), snapshot.ReplicaSet.String(), rs.Name
	}
	if is == nil || !namesObject(is) {
		return owner{kind: object, namespace: pod.Namespace, name: name}, true
	}
	switch group := groupOf(is); {
	case group == appsv1.GroupName && isControllerKind(is.Kind), group == corev1.GroupName && is.Kind == snapshot.Node.String():
		return owner{}, false
	case group == batchv1.GroupName && is.Kind == "Job":
		if of := cronJobName.FindStringSubmatch(is.Name); of != nil {
			return owner{group, cronJobKind, pod.Namespace, of[1]}, true
		}
		fallthrough
	default:
		return owner{group, is.Kind, pod.Namespace, is.Name}, true
	}
}

// kindName is what an API server takes as the name of a kind, as long as a DNS label: CustomResourceDefinitions want the lower-case
// form to be one (apiextensions, ValidateCustomResourceDefinitionNames).
var kindName = regexp.MustCompile(`^[A-Za-z][A-Za-z0-9-]{0,62}$`)

// namesObject reports whether an owner is one that may exist. API servers take any text from who may create pods.
func namesObject(o *metav1.OwnerReference) bool {
	return kindName.MatchString(o.Kind) && len(validation.IsDNS1123Subdomain(o.Name)) == 0
}

// groupOf is the API group of an owner.
func groupOf(o *metav1.OwnerReference) string {
	group, _, found := strings.Cut(o.APIVersion, "/")
	if !found {
		return corev1.GroupName
	}
	return group
}

func isControllerKind(kind string) bool {
	for _, k := range controllerKinds {
		if k.String() == kind {
			return true
		}
	}
	return false
}

// addOwners adds the controllers of pods that have none among those that are read, in the order of their first pods.
func addOwners(x *Index, c *snapshot.Cluster) {
	replicaSets := make(map[key]*appsv1.ReplicaSet, len(c.ReplicaSets))
	for _, rs := range c.ReplicaSets {
		replicaSets[keyOf(rs)] = rs
	}
	owners := map[owner]*controller{}
	for _, pod := range x.pods {
		if x.byPod[keyOf(pod)] != nil {
			continue
		}
		by, ok := ownerOfPod(pod, replicaSets)
		if !ok {
			continue
		}
		ctl := owners[by]
		if ctl == nil {
			ctl = &controller{name: by.name, kind: by.kind, foreign: true, ref: x.Ref(snapshot.Pod, pod), source: pod}
			owners[by] = ctl
			x.controllers = append(x.controllers, ctl)
		}
		ctl.pods = append(ctl.pods, pod)
		x.byPod[keyOf(pod)] = ctl
	}
	for _, ctl := range owners {
		ctl.template = templateOf(ctl.pods, ctl.name)
	}
}

// ofRevision are labels that controllers add to pods by themselves, and that are others after the next rollout, or with the next pod
// (kubernetes.io: Well-Known Labels; argoproj/argo-rollouts, DefaultRolloutUniqueLabelKey).
var ofRevision = map[string]bool{
	appsv1.DefaultDeploymentUniqueLabelKey: true, appsv1.ControllerRevisionHashLabelKey: true, appsv1.DeprecatedTemplateGeneration: true,
	"rollouts-pod-template-hash":   true,
	appsv1.StatefulSetPodNameLabel: true, appsv1.PodIndexLabel: true,
	batchv1.ControllerUidLabel: true, batchv1.JobNameLabel: true, batchv1.JobCompletionIndexAnnotation: true,
	"controller-uid": true, "job-name": true,
}

// isOfRevision reports whether a label of a pod is not of its owner, but of a revision of that, or of the pod alone. Others than
// those that are known name a hash, or have as value what the name of the ReplicaSet adds to that of the owner, or the name of the pod.
func isOfRevision(pod *corev1.Pod, owner, label, value string) bool {
	if ofRevision[label] || strings.HasSuffix(label, "-hash") {
		return true
	}
	is := metav1.GetControllerOfNoCopy(pod)
	if is == nil || value == "" || value == owner {
		return false
	}
	return value == pod.Name || is.Kind == snapshot.ReplicaSet.String() && is.Name == owner+"-"+value
}

// templateOf is what pods have in common: their labels but for those of a revision, and all else of the youngest.
func templateOf(pods []*corev1.Pod, owner string) *corev1.PodTemplateSpec {
	youngest, labels := pods[0], maps.Clone(pods[0].Labels)
	for _, pod := range pods[1:] {
		if youngest.CreationTimestamp.Before(&pod.CreationTimestamp) {
			youngest = pod
		}
		maps.DeleteFunc(labels, func(name, value string) bool { return pod.Labels[name] != value })
	}
	maps.DeleteFunc(labels, func(name, value string) bool { return isOfRevision(youngest, owner, name, value) })
	return &corev1.PodTemplateSpec{
		ObjectMeta: metav1.ObjectMeta{Labels: labels, Annotations: youngest.Annotations},
		Spec:       youngest.Spec,
	}
}

// PodOwners tells the kind and the name of what owns a pod of a cluster, as its Workload has them; both are empty if that is not known.
func PodOwners(c *snapshot.Cluster) func(*corev1.Pod) (kind, name string) {
	replicaSets := make(map[key]*appsv1.ReplicaSet, len(c.ReplicaSets))
	for _, rs := range c.ReplicaSets {
		replicaSets[keyOf(rs)] = rs
	}
	return func(pod *corev1.Pod) (kind, name string) {
		if by, ok := ownerOfPod(pod, replicaSets); ok {
			return by.kind, by.name
		}
		by := ownerOf(pod)
		if rs := replicaSets[by.key]; by.kind == snapshot.ReplicaSet.String() && rs != nil {
			by = ownerOf(rs)
		}
		return by.kind, by.name
	}
}
