package v1beta1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	commonv1 "github.com/meshctl/meshctl/engine/api/common/v1"
)

// ServiceDependency says which Destinations workloads call, so that their proxies need no configuration for others.
//
// +kubebuilder:object:root=true
// +kubebuilder:subresource:status
// +kubebuilder:resource:path=servicedependencies,scope=Namespaced,shortName=sdep,categories={meshctl,mesh-policy}
// +kubebuilder:printcolumn:name="State",type=string,JSONPath=`.status.state`,description="Whether it was accepted; see the status for the reasons"
// +kubebuilder:printcolumn:name="Workloads",type=integer,JSONPath=`.status.counts.workloads`,description="How many Workloads it selects"
// +kubebuilder:printcolumn:name="Error",type=string,JSONPath=`.status.conditions[?(@.type=="Ready")].message`,priority=1,description="The first reason why it is not ready: accepted, and in force"
// +kubebuilder:printcolumn:name="Age",type=date,JSONPath=`.metadata.creationTimestamp`
type ServiceDependency struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// Spec is the desired state.
	Spec ServiceDependencySpec `json:"spec,omitempty,omitzero"`
	// Status is the observed state.
	Status ServiceDependencyStatus `json:"status,omitempty,omitzero"`

	// InCluster is the registered cluster in which the object was found; empty for one of the management cluster. Who reads it says so:
	// it is no part of the object.
	InCluster string `json:"-"`
}

// FoundIn returns InCluster.
func (d *ServiceDependency) FoundIn() string { return d.InCluster }

// ServiceDependencySpec says who calls what.
type ServiceDependencySpec struct {
	// SourceSelectors select the callers; omitted means all.
	// +kubebuilder:validation:MaxItems=100
	SourceSelectors []commonv1.WorkloadSelector `json:"sourceSelectors,omitempty"`
	// DestinationSelectors select what they call; omitted means all.
	// +kubebuilder:validation:MaxItems=100
	DestinationSelectors []commonv1.DestinationSelector `json:"destinationSelectors,omitempty"`
}

// ServiceDependencyStatus is the observed state of a ServiceDependency.
type ServiceDependencyStatus struct {
	// ObservedGeneration is the generation of the spec that this status is about.
	ObservedGeneration int64 `json:"observedGeneration,omitempty"`
	// State is ACCEPTED only if it is accepted on every selected Workload.
	State commonv1.ApprovalState `json:"state,omitempty"`
	// Workloads is the result on each selected Workload, by key name.namespace.cluster.
	Workloads map[string]commonv1.ApprovalStatus `json:"workloads,omitempty"`
	// Errors are the reasons why it is not accepted, and what to do about each.
	Errors []string `json:"errors,omitempty"`
	// Warnings are what a mesh cannot express, or what has no effect.
	Warnings []string `json:"warnings,omitempty"`
	// Counts are the whole numbers of what is listed above.
	Counts *commonv1.Counts `json:"counts,omitempty"`
	// Conditions say the same in the words that all tools know: Ready, Accepted and InForce always; Conflicted, Reconciling and
	// Stalled if they are True. Not part of Gloo Mesh 1.x.
	// +listType=map
	// +listMapKey=type
	// +kubebuilder:validation:MaxItems=16
	Conditions []metav1.Condition `json:"conditions,omitempty"`
}

// ServiceDependencyList is a list of ServiceDependencies.
//
// +kubebuilder:object:root=true
type ServiceDependencyList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`
	// Items of the list.
	Items []ServiceDependency `json:"items"`
}
