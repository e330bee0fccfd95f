package v1

import metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

// BackendTLSPolicy says with which TLS proxies connect to Services. Of how the certificates of these are validated nothing is read.
//
// +kubebuilder:object:root=true
type BackendTLSPolicy struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// Spec is the desired state.
	Spec BackendTLSPolicySpec `json:"spec,omitempty,omitzero"`
}

// BackendTLSPolicyList is a list of BackendTLSPolicies.
//
// +kubebuilder:object:root=true
type BackendTLSPolicyList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`
	Items           []BackendTLSPolicy `json:"items"`
}

// BackendTLSPolicySpec says for what it is.
type BackendTLSPolicySpec struct {
	TargetRefs []PolicyTarget `json:"targetRefs,omitempty"`
}

// PolicyTarget is an object of the policy's own namespace, or the port of that name of it.
type PolicyTarget struct {
	Group       string  `json:"group"`
	Kind        string  `json:"kind"`
	Name        string  `json:"name"`
	SectionName *string `json:"sectionName,omitempty"`
}
