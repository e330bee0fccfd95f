package v1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	commonv1 "github.com/meshctl/meshctl/engine/api/common/v1"
)

// AccessPolicy lets selected identities call selected Destinations, or with action DENY keeps them from it. Once a Destination has one
// that allows, requests that no AccessPolicy allows are rejected. What one denies is rejected, whatever others allow.
//
// +kubebuilder:object:root=true
// +kubebuilder:subresource:status
// +kubebuilder:resource:path=accesspolicies,scope=Namespaced,shortName={ap,map},categories={meshctl,mesh-policy}
// +kubebuilder:printcolumn:name="State",type=string,JSONPath=`.status.state`,description="Whether it was accepted; see the status for the reasons"
// +kubebuilder:printcolumn:name="Action",type=string,JSONPath=`.spec.action`,description="ALLOW, which is also meant if it is empty, or DENY"
// +kubebuilder:printcolumn:name="Enforcement",type=string,JSONPath=`.spec.enforcement`,priority=1,description="ENFORCE, which is also meant if it is empty, or AUDIT"
// +kubebuilder:printcolumn:name="Destinations",type=integer,JSONPath=`.status.counts.destinations`,description="How many Destinations it selects"
// +kubebuilder:printcolumn:name="Problems",type=integer,JSONPath=`.status.counts.problems`,description="On how many it is not accepted"
// +kubebuilder:printcolumn:name="Error",type=string,JSONPath=`.status.conditions[?(@.type=="Ready")].message`,priority=1,description="The first reason why it is not ready: accepted, and in force"
// +kubebuilder:printcolumn:name="Age",type=date,JSONPath=`.metadata.creationTimestamp`
type AccessPolicy struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// Spec is the desired state.
	Spec AccessPolicySpec `json:"spec,omitempty,omitzero"`
	// Status is the observed state.
	Status AccessPolicyStatus `json:"status,omitempty,omitzero"`

	// InCluster is the registered cluster in which the policy was found; empty for one of the management cluster. Who reads it says so:
	// it is no part of the object.
	InCluster string `json:"-"`
}

// FoundIn returns InCluster.
func (p *AccessPolicy) FoundIn() string { return p.InCluster }

// AccessAction is what becomes of the requests that an AccessPolicy selects.
// +kubebuilder:validation:Enum=ALLOW;DENY
type AccessAction string

// The actions.
const (
	// AccessAllow lets the requests in, and rejects all that no AccessPolicy on the Destination allows.
	AccessAllow AccessAction = "ALLOW"
	// AccessDeny rejects the requests, whatever allows them, and leaves all others as they are.
	AccessDeny AccessAction = "DENY"
)

// Enforcement says whether an AccessPolicy decides.
// +kubebuilder:validation:Enum=ENFORCE;AUDIT
type Enforcement string

// The values of Enforcement.
const (
	// EnforcementEnforce has the mesh do what the policy says.
	EnforcementEnforce Enforcement = "ENFORCE"
	// EnforcementAudit changes nothing for any request: meshctl says which calls the policy would refuse, and proxies of Istio's sidecar
	// mode count which requests.
	EnforcementAudit Enforcement = "AUDIT"
)

// AccessPolicySpec says who may call what, or may not. Paths, methods and ports must all be met by a request.
type AccessPolicySpec struct {
	// Action is ALLOW if omitted. With DENY, the policy rejects what it selects, whatever other AccessPolicies allow; it closes nothing
	// else. Callers that present no identity are rejected only by a policy without sourceSelector. Not part of Gloo Mesh 1.x.
	Action AccessAction `json:"action,omitempty"`
	// Enforcement is ENFORCE if omitted. With AUDIT, the policy refuses nothing and allows nothing: meshctl describe, why and plan say
	// which calls it would refuse, if all that is audited was enforced. The proxies of pods of Istio's sidecar mode count which requests
	// they would refuse, by AuthorizationPolicies with the annotation istio.io/dry-run; meshctl describe and meshctl top show how many.
	// A policy of a workload cluster is rejected with it. Not part of Gloo Mesh 1.x.
	Enforcement Enforcement `json:"enforcement,omitempty"`
	// SourceSelector selects the callers by identity; empty means every caller, also those without identity.
	// +kubebuilder:validation:MaxItems=100
	SourceSelector []commonv1.IdentitySelector `json:"sourceSelector,omitempty"`
	// DestinationSelector selects the Destinations that are called; empty means all.
	// +kubebuilder:validation:MaxItems=100
	DestinationSelector []commonv1.DestinationSelector `json:"destinationSelector,omitempty"`
	// AllowedPaths, with action DENY those that are denied, are HTTP paths, or gRPC methods as /package.service/method. A * at the end matches any ending, one at
	// the beginning any beginning; omitted means any path. Proxies compare a path as the mesh normalizes it: unless its
	// pathNormalization is DECODE_AND_MERGE_SLASHES, /api/* also allows /api/..%2fadmin
	// (https://istio.io/latest/docs/ops/best-practices/security/#customize-your-system-on-path-normalization).
	// +kubebuilder:validation:MaxItems=1000
	// +kubebuilder:validation:items:MinLength=1
	// +kubebuilder:validation:items:MaxLength=2048
	// +kubebuilder:validation:items:XValidation:rule="(self.startsWith('/') || self.startsWith('*')) && (self.contains('{') || self.matches('^([^*]*[*]?|[*][^*]*)$'))",message="must begin with / or *, and may have one * only, at its beginning or at its end; for example /api/* or */info"
	AllowedPaths []string `json:"allowedPaths,omitempty"`
	// AllowedMethods, with action DENY those that are denied, are HTTP methods in upper case; gRPC ignores them; omitted means any.
	// +kubebuilder:validation:MaxItems=100
	// +kubebuilder:validation:items:MinLength=1
	// +kubebuilder:validation:items:MaxLength=64
	// +kubebuilder:validation:items:XValidation:rule="self == self.upperAscii()",messageExpression="'method ' + self + ' can never match, as HTTP methods are in upper case; write ' + self.upperAscii()",message="HTTP methods are in upper case"
	AllowedMethods []string `json:"allowedMethods,omitempty"`
	// AllowedPorts, with action DENY those that are denied, are ports of the workload that receives the request; omitted means any.
	// +kubebuilder:validation:items:Minimum=1
	// +kubebuilder:validation:items:Maximum=65535
	AllowedPorts []uint32 `json:"allowedPorts,omitempty"`
}

// Denies reports whether the policy denies what it selects.
func (s *AccessPolicySpec) Denies() bool { return s.Action == AccessDeny }

// Audited reports whether the policy only has meshctl say what it would refuse.
func (s *AccessPolicySpec) Audited() bool { return s.Enforcement == EnforcementAudit }

// AccessPolicyStatus is the observed state of an AccessPolicy. Its maps and lists are cut short when they grow large: problems
// come first, and counts has the whole numbers.
type AccessPolicyStatus struct {
	// ObservedGeneration is the generation of the spec that this status is about.
	ObservedGeneration int64 `json:"observedGeneration,omitempty"`
	// LastEnforcedGeneration is the last generation of the spec that was in force on any Destination. It stays when the
	// policy no longer is, to tell one that is no longer in force from one that never was.
	LastEnforcedGeneration int64 `json:"lastEnforcedGeneration,omitempty"`
	// State is ACCEPTED only if the policy is accepted on every selected Destination.
	State commonv1.ApprovalState `json:"state,omitempty"`
	// Destinations is the result on each selected Destination, by key name.namespace.cluster.
	Destinations map[string]commonv1.ApprovalStatus `json:"destinations,omitempty"`
	// Workloads are the keys of the Workloads that the policy selects as callers.
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

// AccessPolicyList is a list of AccessPolicies.
//
// +kubebuilder:object:root=true
type AccessPolicyList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`
	// Items of the list.
	Items []AccessPolicy `json:"items"`
}
