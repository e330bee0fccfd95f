package v1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	commonv1 "github.com/meshctl/meshctl/engine/api/common/v1"
	enterprisev1beta1 "github.com/meshctl/meshctl/engine/api/enterprise/v1beta1"
)

// Role lists what its bearers may write. An absent list allows nothing, and in selectors nothing is implied: "*" has to
// be written for "any". It counts in the namespace of the management plane only, where meshctl serve enforces Roles.
//
// +kubebuilder:object:root=true
// +kubebuilder:subresource:status
// +kubebuilder:resource:path=roles,scope=Namespaced,shortName={gmrole,gmroles},categories={meshctl,mesh-rbac}
// +kubebuilder:printcolumn:name="First-Traffic-Actions",type=string,JSONPath=`.spec.trafficPolicyScopes[0].trafficPolicyActions`,description="What its first scope lets write in TrafficPolicies"
// +kubebuilder:printcolumn:name="First-VirtualMesh-Actions",type=string,JSONPath=`.spec.virtualMeshScopes[0].virtualMeshActions`,description="What its first scope lets write in VirtualMeshes"
// +kubebuilder:printcolumn:name="Age",type=date,JSONPath=`.metadata.creationTimestamp`
type Role struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// Spec is what the bearers may write.
	Spec RoleSpec `json:"spec,omitempty,omitzero"`
	// Status of the role.
	Status RoleStatus `json:"status,omitempty,omitzero"`
}

// RoleSpec lists what the bearers may write. TrafficPolicies and VirtualMeshes are checked field by field, the others as
// a whole.
type RoleSpec struct {
	// TrafficPolicyScopes allow TrafficPolicies.
	// +kubebuilder:validation:MaxItems=32
	TrafficPolicyScopes []TrafficPolicyScope `json:"trafficPolicyScopes,omitempty"`
	// VirtualMeshScopes allow VirtualMeshes.
	// +kubebuilder:validation:MaxItems=32
	VirtualMeshScopes []VirtualMeshScope `json:"virtualMeshScopes,omitempty"`
	// AccessPolicyScopes allow AccessPolicies.
	// +kubebuilder:validation:MaxItems=32
	AccessPolicyScopes []AccessPolicyScope `json:"accessPolicyScopes,omitempty"`
	// VirtualDestinationScopes allow VirtualDestinations.
	// +kubebuilder:validation:MaxItems=32
	VirtualDestinationScopes []VirtualDestinationScope `json:"virtualDestinationScopes,omitempty"`
	// WasmDeploymentScopes allow WasmDeployments.
	// +kubebuilder:validation:MaxItems=32
	WasmDeploymentScopes []WasmDeploymentScope `json:"wasmDeploymentScopes,omitempty"`
	// AccessLogRecordScopes allow AccessLogRecords.
	// +kubebuilder:validation:MaxItems=32
	AccessLogRecordScopes []AccessLogRecordScope `json:"accessLogRecordScopes,omitempty"`
}

// TrafficPolicyScope allows TrafficPolicies whose selectors stay within these.
type TrafficPolicyScope struct {
	// TrafficPolicyActions are the parts of a policy that may be written.
	TrafficPolicyActions []TrafficPolicyAction `json:"trafficPolicyActions,omitempty"`
	// DestinationSelectors are what may be selected as destination.
	// +kubebuilder:validation:MaxItems=100
	DestinationSelectors []commonv1.DestinationSelector `json:"destinationSelectors,omitempty"`
	// WorkloadSelectors are what may be selected as source.
	// +kubebuilder:validation:MaxItems=100
	WorkloadSelectors []commonv1.WorkloadSelector `json:"workloadSelectors,omitempty"`
}

// TrafficPolicyAction is a part of a TrafficPolicy.
//
// +kubebuilder:validation:Enum=UNKNOWN_TRAFFIC_POLICY_ACTION;ALL;TRAFFIC_SHIFT;FAULT_INJECTION;REQUEST_TIMEOUT;RETRIES;CORS_POLICY;MIRROR;HEADER_MANIPULATION;OUTLIER_DETECTION;MTLS_CONFIG
type TrafficPolicyAction string

const (
	// TrafficPolicyActionUnknown is no part.
	TrafficPolicyActionUnknown TrafficPolicyAction = "UNKNOWN_TRAFFIC_POLICY_ACTION"
	// TrafficPolicyActionAll is every part.
	TrafficPolicyActionAll TrafficPolicyAction = "ALL"
	// TrafficPolicyActionTrafficShift is policy.trafficShift.
	TrafficPolicyActionTrafficShift TrafficPolicyAction = "TRAFFIC_SHIFT"
	// TrafficPolicyActionFaultInjection is policy.faultInjection.
	TrafficPolicyActionFaultInjection TrafficPolicyAction = "FAULT_INJECTION"
	// TrafficPolicyActionRequestTimeout is policy.requestTimeout.
	TrafficPolicyActionRequestTimeout TrafficPolicyAction = "REQUEST_TIMEOUT"
	// TrafficPolicyActionRetries is policy.retries.
	TrafficPolicyActionRetries TrafficPolicyAction = "RETRIES"
	// TrafficPolicyActionCorsPolicy is policy.corsPolicy.
	TrafficPolicyActionCorsPolicy TrafficPolicyAction = "CORS_POLICY"
	// TrafficPolicyActionMirror is policy.mirror.
	TrafficPolicyActionMirror TrafficPolicyAction = "MIRROR"
	// TrafficPolicyActionHeaderManipulation is policy.headerManipulation.
	TrafficPolicyActionHeaderManipulation TrafficPolicyAction = "HEADER_MANIPULATION"
	// TrafficPolicyActionOutlierDetection is policy.outlierDetection.
	TrafficPolicyActionOutlierDetection TrafficPolicyAction = "OUTLIER_DETECTION"
	// TrafficPolicyActionMtlsConfig is policy.mtls.
	TrafficPolicyActionMtlsConfig TrafficPolicyAction = "MTLS_CONFIG"
)

// VirtualMeshScope allows VirtualMeshes whose members are among these.
type VirtualMeshScope struct {
	// VirtualMeshActions are the parts of a VirtualMesh that may be written.
	VirtualMeshActions []VirtualMeshAction `json:"virtualMeshActions,omitempty"`
	// MeshRefs are the meshes that may be members.
	MeshRefs []commonv1.ObjectRef `json:"meshRefs,omitempty"`
}

// VirtualMeshAction is a part of a VirtualMesh.
//
// +kubebuilder:validation:Enum=UNKNOWN_VIRTUAL_MESH_ACTION;ALL;MTLS_CONFIG;FEDERATION;GLOBAL_ACCESS_POLICY
type VirtualMeshAction string

const (
	// VirtualMeshActionUnknown is no part.
	VirtualMeshActionUnknown VirtualMeshAction = "UNKNOWN_VIRTUAL_MESH_ACTION"
	// VirtualMeshActionAll is every part.
	VirtualMeshActionAll VirtualMeshAction = "ALL"
	// VirtualMeshActionMtlsConfig is mtlsConfig.
	VirtualMeshActionMtlsConfig VirtualMeshAction = "MTLS_CONFIG"
	// VirtualMeshActionFederation is federation.
	VirtualMeshActionFederation VirtualMeshAction = "FEDERATION"
	// VirtualMeshActionGlobalAccessPolicy is globalAccessPolicy.
	VirtualMeshActionGlobalAccessPolicy VirtualMeshAction = "GLOBAL_ACCESS_POLICY"
)

// AccessPolicyScope allows AccessPolicies whose selectors stay within these.
type AccessPolicyScope struct {
	// IdentitySelectors are what may be selected as source.
	IdentitySelectors []commonv1.IdentitySelector `json:"identitySelectors,omitempty"`
	// DestinationSelectors are what may be selected as destination.
	// +kubebuilder:validation:MaxItems=100
	DestinationSelectors []commonv1.DestinationSelector `json:"destinationSelectors,omitempty"`
}

// VirtualDestinationScope allows VirtualDestinations that stay within these.
type VirtualDestinationScope struct {
	// VirtualMeshRefs are the VirtualMeshes in which they may be visible.
	VirtualMeshRefs []commonv1.ObjectRef `json:"virtualMeshRefs,omitempty"`
	// MeshRefs are the meshes in which they may be visible.
	MeshRefs []commonv1.ObjectRef `json:"meshRefs,omitempty"`
	// DestinationSelectors are what may be selected to stand behind them.
	// +kubebuilder:validation:MaxItems=100
	DestinationSelectors []commonv1.DestinationSelector `json:"destinationSelectors,omitempty"`
	// Destinations are what may be listed to stand behind them.
	Destinations []enterprisev1beta1.BackingDestination `json:"destinations,omitempty"`
}

// WasmDeploymentScope allows WasmDeployments on these workloads.
type WasmDeploymentScope struct {
	// WorkloadSelectors are what may be selected.
	WorkloadSelectors []commonv1.WorkloadSelector `json:"workloadSelectors,omitempty"`
}

// AccessLogRecordScope allows AccessLogRecords on these workloads.
type AccessLogRecordScope struct {
	// WorkloadSelectors are what may be selected.
	WorkloadSelectors []commonv1.WorkloadSelector `json:"workloadSelectors,omitempty"`
}

// RoleStatus is the observed state of a Role.
type RoleStatus struct {
	// ObservedGeneration is the generation of the spec that this status is about.
	ObservedGeneration int64 `json:"observedGeneration,omitempty"`
}

// RoleList is a list of Roles.
//
// +kubebuilder:object:root=true
type RoleList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`
	// Items of the list.
	Items []Role `json:"items"`
}
