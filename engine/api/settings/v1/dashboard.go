package v1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	commonv1 "github.com/meshctl/meshctl/engine/api/common/v1"
)

// Dashboard sets how users log in to the dashboard.
//
// +kubebuilder:object:root=true
// +kubebuilder:subresource:status
// +kubebuilder:resource:path=dashboards,scope=Namespaced,shortName=gmdash,categories={meshctl,mesh-settings}
// +kubebuilder:printcolumn:name="State",type=string,JSONPath=`.status.state`,description="Whether it was accepted; see the status for the reasons"
// +kubebuilder:printcolumn:name="Issuer",type=string,JSONPath=`.spec.auth.oidc.issuerUrl`,description="Who logs users in"
// +kubebuilder:printcolumn:name="Error",type=string,JSONPath=`.status.conditions[?(@.type=="Ready")].message`,priority=1,description="The first reason why they are not ready: accepted, and in force"
// +kubebuilder:printcolumn:name="Age",type=date,JSONPath=`.metadata.creationTimestamp`
type Dashboard struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// Spec is the desired state.
	Spec DashboardSpec `json:"spec,omitempty,omitzero"`
	// Status is the observed state.
	Status DashboardStatus `json:"status,omitempty,omitzero"`
}

// DashboardSpec sets how users log in.
type DashboardSpec struct {
	// Auth sets how users log in; omitted lets everybody in.
	Auth *DashboardAuth `json:"auth,omitempty"`
}

// DashboardAuth sets how users log in.
//
// +kubebuilder:validation:XValidation:rule="has(self.oidc)",message="oidc is needed: it is the only way to log in; leave auth out to let everybody in"
type DashboardAuth struct {
	// Oidc logs users in by OpenID Connect.
	Oidc *OidcConfig `json:"oidc,omitempty"`
}

// DashboardStatus is the observed state of the settings.
type DashboardStatus struct {
	// ObservedGeneration is the generation of the spec that this status is about.
	ObservedGeneration int64 `json:"observedGeneration,omitempty"`
	// State of the settings.
	State commonv1.ApprovalState `json:"state,omitempty"`
	// Errors are the reasons why they are not accepted, and what to do about each.
	Errors []string `json:"errors,omitempty"`
}

// DashboardList is a list of Dashboards.
//
// +kubebuilder:object:root=true
type DashboardList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`
	// Items of the list.
	Items []Dashboard `json:"items"`
}
