package v1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	commonv1 "github.com/meshctl/meshctl/engine/api/common/v1"
)

// TrafficPolicy says how requests from selected workloads to selected Destinations are treated, whatever mesh they are
// in.
//
// +kubebuilder:object:root=true
// +kubebuilder:subresource:status
// +kubebuilder:resource:path=trafficpolicies,scope=Namespaced,shortName=tp,categories={meshctl,mesh-policy}
// +kubebuilder:printcolumn:name="State",type=string,JSONPath=`.status.state`,description="Whether it was accepted; see the status for the reasons"
// +kubebuilder:printcolumn:name="Destinations",type=integer,JSONPath=`.status.counts.destinations`,description="How many Destinations it selects"
// +kubebuilder:printcolumn:name="Problems",type=integer,JSONPath=`.status.counts.problems`,description="On how many it is not accepted"
// +kubebuilder:printcolumn:name="Error",type=string,JSONPath=`.status.conditions[?(@.type=="Ready")].message`,priority=1,description="The first reason why it is not ready: accepted, and in force"
// +kubebuilder:printcolumn:name="Age",type=date,JSONPath=`.metadata.creationTimestamp`
type TrafficPolicy struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// Spec is the desired state.
	Spec TrafficPolicySpec `json:"spec,omitempty,omitzero"`
	// Status is the observed state.
	Status TrafficPolicyStatus `json:"status,omitempty,omitzero"`

	// InCluster is the registered cluster in which the policy was found; empty for one of the management cluster. Who reads it says so:
	// it is no part of the object.
	InCluster string `json:"-"`
}

// FoundIn returns InCluster.
func (p *TrafficPolicy) FoundIn() string { return p.InCluster }

// TrafficPolicySpec selects traffic and says how it is treated.
type TrafficPolicySpec struct {
	// SourceSelector selects the workloads whose requests are meant; omitted means all.
	// +kubebuilder:validation:MaxItems=100
	SourceSelector []commonv1.WorkloadSelector `json:"sourceSelector,omitempty"`
	// DestinationSelector selects the Destinations that the requests go to; omitted means all.
	// +kubebuilder:validation:MaxItems=100
	DestinationSelector []commonv1.DestinationSelector `json:"destinationSelector,omitempty"`
	// HttpRequestMatchers narrow the policy to certain requests. Conditions within one element must all hold, and one
	// element of the list is enough; omitted means any request.
	// +kubebuilder:validation:MaxItems=100
	HttpRequestMatchers []HttpMatcher `json:"httpRequestMatchers,omitempty"`
	// Policy is what is done to the requests.
	Policy *Policy `json:"policy,omitempty"`
}

// Policy is what is done to requests. Every part is optional.
type Policy struct {
	// TrafficShift sends the requests somewhere else, or splits them.
	TrafficShift *MultiDestination `json:"trafficShift,omitempty"`
	// FaultInjection delays or fails requests on purpose.
	FaultInjection *FaultInjection `json:"faultInjection,omitempty"`
	// RequestTimeout is how long a request may take in all, retries included.
	// +kubebuilder:validation:Type=string
	// +kubebuilder:validation:MaxLength=32
	// +kubebuilder:validation:XValidation:rule=`self.matches('^(0|([0-9]{1,5}([.][0-9]{1,9})?h|[0-9]{1,7}([.][0-9]{1,9})?m|[0-9]{1,9}([.][0-9]{1,9})?(s|ms|us|µs|ns))+)$')`,message="must be a duration: numbers with a unit (h, m, s, ms, us, ns), for example 500ms, 5s or 1h30m"
	RequestTimeout *metav1.Duration `json:"requestTimeout,omitempty"`
	// Retries says how often a failed request is tried again.
	Retries *RetryPolicy `json:"retries,omitempty"`
	// CorsPolicy answers the cross-origin checks of browsers.
	CorsPolicy *CorsPolicy `json:"corsPolicy,omitempty"`
	// Mirror sends a copy of the requests to another Service and ignores its answers.
	Mirror *Mirror `json:"mirror,omitempty"`
	// HeaderManipulation adds and removes headers.
	HeaderManipulation *HeaderManipulation `json:"headerManipulation,omitempty"`
	// OutlierDetection takes endpoints that keep failing out of the load balancing for a while. It holds for every
	// caller, so it needs an empty sourceSelector.
	OutlierDetection *OutlierDetection `json:"outlierDetection,omitempty"`
	// Mtls overrides the TLS mode of the Settings.
	Mtls *MTLS `json:"mtls,omitempty"`
	// Csrf checks the origin of requests that change something.
	Csrf *CsrfPolicy `json:"csrf,omitempty"`
	// RateLimit bounds the number of requests.
	RateLimit *RouteRateLimit `json:"rateLimit,omitempty"`
}

// TrafficPolicyStatus is the observed state of a TrafficPolicy. Its maps and lists are cut short when they grow large: problems
// come first, and counts has the whole numbers.
type TrafficPolicyStatus struct {
	// ObservedGeneration is the generation of the spec that this status is about.
	ObservedGeneration int64 `json:"observedGeneration,omitempty"`
	// LastEnforcedGeneration is the last generation of the spec that was in force on any Destination. It stays when the
	// policy no longer is, to tell one that is no longer in force from one that never was.
	LastEnforcedGeneration int64 `json:"lastEnforcedGeneration,omitempty"`
	// State is ACCEPTED only if the policy is accepted on every selected Destination.
	State commonv1.ApprovalState `json:"state,omitempty"`
	// Destinations is the result on each selected Destination, by key name.namespace.cluster.
	Destinations map[string]commonv1.ApprovalStatus `json:"destinations,omitempty"`
	// Workloads are the keys of the selected Workloads.
	Workloads []string `json:"workloads,omitempty"`
	// Errors are the reasons why the policy as a whole is not accepted, and what to do about each.
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

// TrafficPolicyList is a list of TrafficPolicies.
//
// +kubebuilder:object:root=true
type TrafficPolicyList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`
	// Items of the list.
	Items []TrafficPolicy `json:"items"`
}
