package v1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	commonv1 "github.com/meshctl/meshctl/engine/api/common/v1"
	networkingv1 "github.com/meshctl/meshctl/engine/api/networking/v1"
)

// AccessLogRecord has the proxies of workloads log requests. What they log goes to the management plane, wherever the record is: who may
// read logs there reads all of them.
//
// One in a namespace of a registered cluster that Settings name in workloadClusterPolicies selects workloads of that namespace in that
// cluster, whatever its selectors say. It has their requests kept, with the headers that it names, but none that may have a secret. Entries
// of the log name it as NAME.NAMESPACE.CLUSTER. At most 10 of a namespace count, the oldest first, where those of the management cluster
// leave room.
//
// +kubebuilder:object:root=true
// +kubebuilder:subresource:status
// +kubebuilder:resource:path=accesslogrecords,scope=Namespaced,shortName=alr,categories={meshctl,mesh-policy}
// +kubebuilder:printcolumn:name="State",type=string,JSONPath=`.status.state`,description="Whether it was accepted; see the status for the reasons"
// +kubebuilder:printcolumn:name="Error",type=string,JSONPath=`.status.conditions[?(@.type=="Ready")].message`,priority=1,description="The first reason why it is not ready: accepted, and in force"
// +kubebuilder:printcolumn:name="Age",type=date,JSONPath=`.metadata.creationTimestamp`
type AccessLogRecord struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// Spec is the desired state.
	Spec AccessLogRecordSpec `json:"spec,omitempty,omitzero"`
	// Status is the observed state.
	Status AccessLogRecordStatus `json:"status,omitempty,omitzero"`

	// InCluster is the registered cluster in which the record was found; empty for one of the management cluster. Who reads it says so:
	// it is no part of the object.
	InCluster string `json:"-"`
}

// FoundIn returns InCluster.
func (r *AccessLogRecord) FoundIn() string { return r.InCluster }

// AccessLogRecordSpec says which requests are logged, and with what.
type AccessLogRecordSpec struct {
	// WorkloadSelectors select the workloads; empty means all, and all of its own namespace for a record of a registered cluster.
	// +kubebuilder:validation:MaxItems=100
	WorkloadSelectors []commonv1.WorkloadSelector `json:"workloadSelectors,omitempty"`
	// Filters narrow the log to requests that pass at least one of them; empty means every request.
	// +kubebuilder:validation:MaxItems=100
	Filters []AccessLogFilter `json:"filters,omitempty"`
	// IncludedRequestHeaders are logged too.
	IncludedRequestHeaders []string `json:"includedRequestHeaders,omitempty"`
	// IncludedResponseHeaders are logged too.
	IncludedResponseHeaders []string `json:"includedResponseHeaders,omitempty"`
	// IncludedResponseTrailers are logged too.
	IncludedResponseTrailers []string `json:"includedResponseTrailers,omitempty"`
	// IncludedFilterStateObjects are state of the proxy's filters that is logged too.
	IncludedFilterStateObjects []string `json:"includedFilterStateObjects,omitempty"`
}

// AccessLogFilter lets requests pass that match.
//
// +kubebuilder:validation:XValidation:rule="[has(self.statusCodeMatcher), has(self.headerMatcher)].filter(x, x).size() == 1",message="set exactly one of statusCodeMatcher and headerMatcher; for either, write two filters"
type AccessLogFilter struct {
	// StatusCodeMatcher looks at the status of the response.
	StatusCodeMatcher *StatusCodeMatcher `json:"statusCodeMatcher,omitempty"`
	// HeaderMatcher looks at a request header.
	HeaderMatcher *networkingv1.HeaderMatcher `json:"headerMatcher,omitempty"`
}

// StatusCodeMatcher compares the status of a response.
type StatusCodeMatcher struct {
	// Value to compare with.
	// +kubebuilder:validation:Minimum=0
	// +kubebuilder:validation:Maximum=599
	Value uint32 `json:"value,omitempty"`
	// Comparator says how; EQ if omitted.
	Comparator Comparator `json:"comparator,omitempty"`
}

// Comparator says how two numbers are compared.
//
// +kubebuilder:validation:Enum=EQ;GE;LE
type Comparator string

const (
	// ComparatorEQ: equal. An empty Comparator means the same.
	ComparatorEQ Comparator = "EQ"
	// ComparatorGE: at least.
	ComparatorGE Comparator = "GE"
	// ComparatorLE: at most.
	ComparatorLE Comparator = "LE"
)

// AccessLogRecordStatus is the observed state of an AccessLogRecord.
type AccessLogRecordStatus struct {
	// ObservedGeneration is the generation of the spec that this status is about.
	ObservedGeneration int64 `json:"observedGeneration,omitempty"`
	// State is ACCEPTED once proxies of selected workloads were seen to send their log, and PENDING before.
	State commonv1.ApprovalState `json:"state,omitempty"`
	// Errors are the reasons why it is not accepted, and what to do about each.
	Errors []string `json:"errors,omitempty"`
	// Warnings are what a mesh cannot express, or what has no effect.
	Warnings []string `json:"warnings,omitempty"`
	// Workloads are the selected Workloads; counts has how many there are if these are too many to be listed.
	Workloads []commonv1.ObjectRef `json:"workloads,omitempty"`
	// Counts are the whole numbers of what is listed above. Not part of Gloo Mesh 1.x.
	Counts *commonv1.Counts `json:"counts,omitempty"`
	// Conditions say the same in the words that all tools know: Ready, Accepted and InForce always; Reconciling and Stalled if they are
	// True. Not part of Gloo Mesh 1.x.
	// +listType=map
	// +listMapKey=type
	// +kubebuilder:validation:MaxItems=16
	Conditions []metav1.Condition `json:"conditions,omitempty"`
}

// AccessLogRecordList is a list of AccessLogRecords.
//
// +kubebuilder:object:root=true
type AccessLogRecordList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`
	// Items of the list.
	Items []AccessLogRecord `json:"items"`
}
