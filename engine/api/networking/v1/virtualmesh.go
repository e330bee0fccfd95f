package v1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	commonv1 "github.com/meshctl/meshctl/engine/api/common/v1"
)

// VirtualMesh joins Meshes: it gives them a common trust, makes their services reachable for each other, and sets
// whether calls are refused unless allowed.
//
// +kubebuilder:object:root=true
// +kubebuilder:subresource:status
// +kubebuilder:resource:path=virtualmeshes,scope=Namespaced,shortName={vm,vmesh},categories={meshctl,mesh-policy}
// +kubebuilder:printcolumn:name="State",type=string,JSONPath=`.status.state`,description="Whether it was accepted; see the status for the reasons"
// +kubebuilder:printcolumn:name="Meshes",type=integer,JSONPath=`.status.counts.meshes`,description="How many members it has"
// +kubebuilder:printcolumn:name="Access",type=string,JSONPath=`.spec.globalAccessPolicy`,description="Whether calls are refused unless allowed"
// +kubebuilder:printcolumn:name="Federated",type=integer,JSONPath=`.status.counts.destinations`,description="How many Destinations other meshes can reach"
// +kubebuilder:printcolumn:name="Error",type=string,JSONPath=`.status.conditions[?(@.type=="Ready")].message`,priority=1,description="The first reason why it is not ready: accepted, and in force"
// +kubebuilder:printcolumn:name="Age",type=date,JSONPath=`.metadata.creationTimestamp`
type VirtualMesh struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// Spec is the desired state.
	Spec VirtualMeshSpec `json:"spec,omitempty,omitzero"`
	// Status is the observed state.
	Status VirtualMeshStatus `json:"status,omitempty,omitzero"`
}

// VirtualMeshSpec names the members and what they share.
type VirtualMeshSpec struct {
	// Meshes are the members.
	// +kubebuilder:validation:MaxItems=1000
	// +kubebuilder:validation:items:XValidation:rule=`has(self.name) && self.name != "" && has(self.namespace) && self.namespace != ""`,message="name and namespace are both needed to refer to a Mesh; kubectl get meshes -A lists them"
	Meshes []commonv1.ObjectRef `json:"meshes,omitempty"`
	// MtlsConfig gives the members a common trust; omitted leaves their certificates alone.
	MtlsConfig *MTLSConfig `json:"mtlsConfig,omitempty"`
	// Federation makes Destinations reachable from other members.
	Federation *Federation `json:"federation,omitempty"`
	// GlobalAccessPolicy sets whether calls are refused unless an AccessPolicy allows them. With AUDIT, each mesh stays as it is: meshctl
	// describe says which calls ENABLED would refuse, and proxies of Istio's sidecar mode count which requests they would refuse.
	GlobalAccessPolicy GlobalAccessPolicy `json:"globalAccessPolicy,omitempty"`
}

// GlobalAccessPolicy sets whether calls are refused unless allowed.
//
// +kubebuilder:validation:Enum=MESH_DEFAULT;ENABLED;DISABLED;AUDIT
type GlobalAccessPolicy string

const (
	// GlobalAccessPolicyMeshDefault leaves each mesh as it is. This is also what an omitted value means.
	GlobalAccessPolicyMeshDefault GlobalAccessPolicy = "MESH_DEFAULT"
	// GlobalAccessPolicyEnabled refuses what no AccessPolicy allows.
	GlobalAccessPolicyEnabled GlobalAccessPolicy = "ENABLED"
	// GlobalAccessPolicyDisabled allows what no AccessPolicy restricts.
	GlobalAccessPolicyDisabled GlobalAccessPolicy = "DISABLED"
	// GlobalAccessPolicyAudit leaves each mesh as it is, and has meshctl say which calls ENABLED would refuse, and proxies of Istio's
	// sidecar mode count which requests. Not part of Gloo Mesh 1.x.
	GlobalAccessPolicyAudit GlobalAccessPolicy = "AUDIT"
)

// AuditsAccess reports whether meshctl only says which calls the global access policy would refuse.
func (s *VirtualMeshSpec) AuditsAccess() bool { return s.GlobalAccessPolicy == GlobalAccessPolicyAudit }

// VirtualMeshStatus is the observed state of a VirtualMesh. Its maps are cut short when they grow large: problems come first,
// and counts has the whole numbers.
type VirtualMeshStatus struct {
	// ObservedGeneration is the generation of the spec that this status is about.
	ObservedGeneration int64 `json:"observedGeneration,omitempty"`
	// State is ACCEPTED only if the VirtualMesh is accepted on every member.
	State commonv1.ApprovalState `json:"state,omitempty"`
	// Errors are the reasons why the VirtualMesh is not accepted, and what to do about each.
	Errors []string `json:"errors,omitempty"`
	// Warnings are what a mesh cannot express, or what has no effect.
	Warnings []string `json:"warnings,omitempty"`
	// Meshes is the result on each member, by key name.namespace.cluster.
	Meshes map[string]commonv1.ApprovalStatus `json:"meshes,omitempty"`
	// Destinations is the result of the federation of each Destination, by key name.namespace.cluster.
	Destinations map[string]commonv1.ApprovalStatus `json:"destinations,omitempty"`
	// Counts are the whole numbers of what is listed above.
	Counts *commonv1.Counts `json:"counts,omitempty"`
	// ProxyLoads say what federation adds to the configuration of each proxy of a member, the largest first; at most ten
	// members are listed. Not part of Gloo Mesh 1.x.
	ProxyLoads []ProxyLoad `json:"proxyLoads,omitempty"`
	// OpenGateways are the gateways of the members that let in all callers although globalAccessPolicy is ENABLED, because
	// they are entrances; the first 100 of them. Not part of Gloo Mesh 1.x.
	OpenGateways []commonv1.ClusterObjectRef `json:"openGateways,omitempty"`
	// Trust is where the common trust of the members stands. Not part of Gloo Mesh 1.x.
	Trust *TrustStatus `json:"trust,omitempty"`
	// Conditions say the same in the words that all tools know: Ready, Accepted and InForce always; Conflicted, Reconciling and
	// Stalled if they are True. Not part of Gloo Mesh 1.x.
	// +listType=map
	// +listMapKey=type
	// +kubebuilder:validation:MaxItems=16
	Conditions []metav1.Condition `json:"conditions,omitempty"`
}

// ProxyLoad is what federation adds to the configuration of each proxy of a mesh.
type ProxyLoad struct {
	// Mesh whose proxies get it.
	Mesh commonv1.ObjectRef `json:"mesh"`
	// ServiceEntries are services of other meshes.
	ServiceEntries int32 `json:"serviceEntries"`
	// Endpoints are those of all these services.
	Endpoints int32 `json:"endpoints"`
}

// VirtualMeshList is a list of VirtualMeshes.
//
// +kubebuilder:object:root=true
type VirtualMeshList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`
	// Items of the list.
	Items []VirtualMesh `json:"items"`
}
