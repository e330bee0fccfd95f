// Package v1 (rbacv1) has the kinds of rbac.enterprise.mesh.gloo.solo.io/v1: Role and RoleBinding, which say who may write
// which policies.
//
// +kubebuilder:object:generate=true
// +groupName=rbac.enterprise.mesh.gloo.solo.io
package v1
