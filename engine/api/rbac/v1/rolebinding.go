package v1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	commonv1 "github.com/meshctl/meshctl/engine/api/common/v1"
)

// RoleBinding gives a Role to users, groups and ServiceAccounts. It counts in the namespace of the management plane only.
//
// +kubebuilder:object:root=true
// +kubebuilder:subresource:status
// +kubebuilder:resource:path=rolebindings,scope=Namespaced,shortName={gmrolebinding,gmrolebindings},categories={meshctl,mesh-rbac}
// +kubebuilder:printcolumn:name="Role",type=string,JSONPath=`.spec.roleRef.name`,description="What may be written"
// +kubebuilder:printcolumn:name="First-Subject",type=string,JSONPath=`.spec.subjects[0].name`,description="The first who may"
// +kubebuilder:printcolumn:name="Age",type=date,JSONPath=`.metadata.creationTimestamp`
type RoleBinding struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// Spec says who gets which Role.
	Spec RoleBindingSpec `json:"spec,omitempty,omitzero"`
	// Status is empty.
	Status RoleBindingStatus `json:"status,omitempty,omitzero"`
}

// RoleBindingSpec says who gets which Role.
//
// +kubebuilder:validation:XValidation:rule="has(self.roleRef) && has(self.roleRef.name) && has(self.roleRef.namespace)",message="roleRef is needed, with name and namespace: the Role that is given"
type RoleBindingSpec struct {
	// Subjects are the users, groups and ServiceAccounts that get the Role.
	// +kubebuilder:validation:MaxItems=1000
	// +kubebuilder:validation:items:XValidation:rule="has(self.kind) && self.kind in ['User', 'Group', 'ServiceAccount'] && has(self.name) && (self.kind != 'ServiceAccount' || has(self.__namespace__))",message="a subject is of kind User, Group or ServiceAccount and has a name; a ServiceAccount has a namespace, too"
	Subjects []commonv1.TypedObjectRef `json:"subjects,omitempty"`
	// RoleRef is the Role that they get.
	RoleRef commonv1.ObjectRef `json:"roleRef,omitempty,omitzero"`
}

// RoleBindingStatus is empty.
type RoleBindingStatus struct{}

// RoleBindingList is a list of RoleBindings.
//
// +kubebuilder:object:root=true
type RoleBindingList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`
	// Items of the list.
	Items []RoleBinding `json:"items"`
}
