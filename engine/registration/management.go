package registration

import (
	"context"
	"fmt"
	"strings"

	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	corev1ac "k8s.io/client-go/applyconfigurations/core/v1"

	multiclusterv1alpha1 "github.com/meshctl/meshctl/engine/api/multicluster/v1alpha1"
	"github.com/meshctl/meshctl/engine/cluster"
	"github.com/meshctl/meshctl/engine/kube"
)

func namespaceObject(name string) *object {
	return &object{resource: namespaces, name: name, want: corev1ac.Namespace(name).WithAnnotations(map[string]string{CreatedAnnotation: "true"})}
}

// writeKubernetesCluster writes the object and, under a manager of its own, the
// part of its status that only registration knows.
func (r *registration) writeKubernetesCluster(ctx context.Context) error {
	o := &object{resource: kubernetesClusters, namespace: r.MgmtNamespace, name: r.Name}
	kind := metav1.TypeMeta{APIVersion: multiclusterv1alpha1.GroupVersion.String(), Kind: o.kind}
	meta := metav1.ObjectMeta{Namespace: r.MgmtNamespace, Name: r.Name}
	full := meta
	full.Labels = map[string]string{cluster.ManagedByLabel: cluster.ManagedBy}
	full.Annotations = map[string]string{cluster.SuffixesAnnotation: strings.Join(r.suffixes, ",")}
	if r.via.uid() != "" {
		full.Annotations[cluster.UIDAnnotation] = r.via.uid()
	}
	spec := multiclusterv1alpha1.KubernetesClusterSpec{ClusterDomain: r.ClusterDomain}
	if !r.via.relayed() {
		full.Annotations[cluster.LifetimeAnnotation], spec.SecretName = r.ttl().String(), r.Name
	}
	o.want = &multiclusterv1alpha1.KubernetesCluster{
		TypeMeta: kind, ObjectMeta: full,
		Spec: spec,
	}
	change, err := r.management.apply(ctx, o)
	if err != nil {
		return err
	}
	status, err := r.applyStatus(ctx, o, &multiclusterv1alpha1.KubernetesCluster{
		TypeMeta: kind, ObjectMeta: meta,
		Status: multiclusterv1alpha1.KubernetesClusterStatus{Namespace: r.RemoteNamespace, PolicyRules: policyRules(remoteRules(r.policies))},
	})
	if err != nil {
		return err
	}
	if change.Action == Unchanged {
		change.Action = status
	}
	r.report.add(change)
	return nil
}

func (r *registration) applyStatus(ctx context.Context, o *object, want *multiclusterv1alpha1.KubernetesCluster) (Action, error) {
	before, err := r.management.get(ctx, o.resource, o.namespace, o.name)
	if err != nil {
		return "", err
	}
	content, err := runtime.DefaultUnstructuredConverter.ToUnstructured(want)
	if err != nil {
		return "", fmt.Errorf("%s: encoding its status: %w", o.describe(), err)
	}
	after, err := r.management.client(o.resource, o.namespace).ApplyStatus(ctx, o.name,
		&unstructured.Unstructured{Object: content}, metav1.ApplyOptions{FieldManager: statusManager, Force: true})
	if err != nil {
		return "", fmt.Errorf("%s: writing the status of %s: %w", r.management.label, o.describe(), err)
	}
	return action(before, after), nil
}

// policyRules spells RBAC rules as a KubernetesCluster's status does.
func policyRules(rules []rbacv1.PolicyRule) []multiclusterv1alpha1.PolicyRule {
	out := make([]multiclusterv1alpha1.PolicyRule, len(rules))
	for i, rule := range rules {
		out[i] = multiclusterv1alpha1.PolicyRule{
			Verbs: rule.Verbs, ApiGroups: rule.APIGroups, Resources: rule.Resources,
			ResourceNames: rule.ResourceNames, NonResourceUrls: rule.NonResourceURLs,
		}
	}
	return out
}

// getKubernetesCluster reads the object of that name; nil if there is none, or
// if its type is not installed.
func (s *server) getKubernetesCluster(ctx context.Context, namespace, name string) (*multiclusterv1alpha1.KubernetesCluster, error) {
	found, err := s.get(ctx, kubernetesClusters, namespace, name)
	if found == nil || err != nil {
		return nil, err
	}
	return toKubernetesCluster(found)
}

// listKubernetesClusters lists those of a namespace; none if the type is not installed.
func (s *server) listKubernetesClusters(ctx context.Context, namespace string) ([]*multiclusterv1alpha1.KubernetesCluster, error) {
	list, err := s.client(kubernetesClusters, namespace).List(ctx, metav1.ListOptions{})
	if kube.IsAbsent(err) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("%s: listing KubernetesClusters: %w", s.label, err)
	}
	out := make([]*multiclusterv1alpha1.KubernetesCluster, 0, len(list.Items))
	for i := range list.Items {
		kc, err := toKubernetesCluster(&list.Items[i])
		if err != nil {
			return nil, err
		}
		out = append(out, kc)
	}
	return out, nil
}

func toKubernetesCluster(u *unstructured.Unstructured) (*multiclusterv1alpha1.KubernetesCluster, error) {
	kc := &multiclusterv1alpha1.KubernetesCluster{}
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(u.Object, kc); err != nil {
		return nil, fmt.Errorf("KubernetesCluster %s/%s: decoding: %w", u.GetNamespace(), u.GetName(), err)
	}
	return kc, nil
}
