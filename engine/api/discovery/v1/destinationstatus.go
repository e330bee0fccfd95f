package v1

import (
	commonv1 "github.com/meshctl/meshctl/engine/api/common/v1"
	networkingv1 "github.com/meshctl/meshctl/engine/api/networking/v1"
)

// DestinationStatus is what policies made of a Destination.
type DestinationStatus struct {
	// ObservedGeneration is the generation of the spec that this status is about.
	ObservedGeneration int64 `json:"observedGeneration,omitempty"`
	// AppliedTrafficPolicies are the TrafficPolicies in force, in the order in which they are applied.
	AppliedTrafficPolicies []AppliedTrafficPolicy `json:"appliedTrafficPolicies,omitempty"`
	// AppliedAccessPolicies are the AccessPolicies in force.
	AppliedAccessPolicies []AppliedAccessPolicy `json:"appliedAccessPolicies,omitempty"`
	// LocalFqdn is the DNS name within its own cluster.
	LocalFqdn string `json:"localFqdn,omitempty"`
	// AppliedFederation says how other meshes reach it; absent if they do not.
	AppliedFederation *AppliedFederation `json:"appliedFederation,omitempty"`
	// NotFederated says why no other mesh reaches it although a VirtualMesh selects it, and what to do about that. Not part
	// of Gloo Mesh 1.x.
	NotFederated string `json:"notFederated,omitempty"`
	// RequiredSubsets are the TrafficPolicies that shift requests to subsets of it.
	RequiredSubsets []RequiredSubsets `json:"requiredSubsets,omitempty"`
}

// AppliedTrafficPolicy is a TrafficPolicy in force.
type AppliedTrafficPolicy struct {
	// Ref is the TrafficPolicy.
	Ref commonv1.ObjectRef `json:"ref,omitempty,omitzero"`
	// ClusterName is the registered cluster in which it is; omitted for one of the management cluster. Not part of Gloo Mesh 1.x.
	ClusterName string `json:"clusterName,omitempty"`
	// ObservedGeneration is the generation of the spec in force.
	ObservedGeneration int64 `json:"observedGeneration,omitempty"`
	// Spec is the last one accepted, including targets that are missing at present; it has the fields of a
	// TrafficPolicy's spec.
	//
	// It is a copy of what the API server had already checked, and is not checked again.
	// +kubebuilder:validation:Schemaless
	// +kubebuilder:validation:Type=object
	// +kubebuilder:pruning:PreserveUnknownFields
	Spec networkingv1.TrafficPolicySpec `json:"spec,omitempty,omitzero"`
}

// AppliedAccessPolicy is an AccessPolicy in force.
type AppliedAccessPolicy struct {
	// Ref is the AccessPolicy.
	Ref commonv1.ObjectRef `json:"ref,omitempty,omitzero"`
	// ClusterName is the registered cluster in which it is; omitted for one of the management cluster. Not part of Gloo Mesh 1.x.
	ClusterName string `json:"clusterName,omitempty"`
	// ObservedGeneration is the generation of the spec in force.
	ObservedGeneration int64 `json:"observedGeneration,omitempty"`
	// Spec is the last one accepted; it has the fields of an AccessPolicy's spec.
	//
	// It is a copy of what the API server had already checked, and is not checked again.
	// +kubebuilder:validation:Schemaless
	// +kubebuilder:validation:Type=object
	// +kubebuilder:pruning:PreserveUnknownFields
	Spec networkingv1.AccessPolicySpec `json:"spec,omitempty,omitzero"`
}

// AppliedFederation says how other meshes reach a Destination.
type AppliedFederation struct {
	// FederatedHostname is the name by which they call it.
	FederatedHostname string `json:"federatedHostname,omitempty"`
	// Address is the virtual IP of that name, the same in all meshes; it stays as long as they can call it. Not part of Gloo
	// Mesh 1.x.
	Address string `json:"address,omitempty"`
	// FederatedToMeshes are the meshes that can call it, the first 500 of them.
	FederatedToMeshes []commonv1.ObjectRef `json:"federatedToMeshes,omitempty"`
	// FlatNetwork says that they reach its pods directly, without a gateway.
	FlatNetwork bool `json:"flatNetwork,omitempty"`
	// VirtualMeshRef is the VirtualMesh that federates it.
	VirtualMeshRef commonv1.ObjectRef `json:"virtualMeshRef,omitempty,omitzero"`
	// TcpKeepalive sets the keep-alive probes of the connections.
	TcpKeepalive *commonv1.TCPKeepalive `json:"tcpKeepalive,omitempty"`
	// Errors are the reasons why requests of some of these meshes fail, and what to do about each. Not part of Gloo Mesh 1.x.
	Errors []string `json:"errors,omitempty"`
}

// RequiredSubsets is a TrafficPolicy that shifts requests to subsets of a Destination.
type RequiredSubsets struct {
	// TrafficPolicyRef is the TrafficPolicy.
	TrafficPolicyRef commonv1.ObjectRef `json:"trafficPolicyRef,omitempty,omitzero"`
	// ClusterName is the registered cluster in which it is; omitted for one of the management cluster. Not part of Gloo Mesh 1.x.
	ClusterName string `json:"clusterName,omitempty"`
	// ObservedGeneration is the generation of its spec.
	ObservedGeneration int64 `json:"observedGeneration,omitempty"`
	// TrafficShift is that of its policy; it has the fields of a TrafficPolicy's spec.policy.trafficShift.
	//
	// It is a copy of what the API server had already checked, and is not checked again.
	// +kubebuilder:validation:Schemaless
	// +kubebuilder:validation:Type=object
	// +kubebuilder:pruning:PreserveUnknownFields
	TrafficShift *networkingv1.MultiDestination `json:"trafficShift,omitempty"`
}
