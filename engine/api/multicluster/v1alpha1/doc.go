// Package v1alpha1 (multiclusterv1alpha1) has KubernetesCluster of multicluster.solo.io/v1alpha1: a registered cluster.
//
// +kubebuilder:object:generate=true
// +groupName=multicluster.solo.io
package v1alpha1
