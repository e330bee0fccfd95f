package v1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	commonv1 "github.com/meshctl/meshctl/engine/api/common/v1"
)

// Destination is something that workloads of a mesh can call. Older documents call it a TrafficTarget.
//
// +kubebuilder:object:root=true
// +kubebuilder:subresource:status
// +kubebuilder:resource:path=destinations,scope=Namespaced,shortName={tt,dest},categories={meshctl,mesh-discovery}
// +kubebuilder:printcolumn:name="Cluster",type=string,JSONPath=`.spec.kubeService.ref.clusterName`,description="Where its Service is"
// +kubebuilder:printcolumn:name="Service-Namespace",type=string,JSONPath=`.spec.kubeService.ref.namespace`,description="Its namespace there"
// +kubebuilder:printcolumn:name="Mesh",type=string,JSONPath=`.spec.mesh.name`,description="The Mesh that it is part of"
// +kubebuilder:printcolumn:name="Federated-As",type=string,JSONPath=`.status.appliedFederation.federatedHostname`,description="The name by which other meshes call it"
// +kubebuilder:printcolumn:name="First-Traffic-Policy",type=string,JSONPath=`.status.appliedTrafficPolicies[0].ref.name`,priority=1,description="The first TrafficPolicy in force"
// +kubebuilder:printcolumn:name="First-Access-Policy",type=string,JSONPath=`.status.appliedAccessPolicies[0].ref.name`,priority=1,description="The first AccessPolicy in force"
// +kubebuilder:printcolumn:name="Age",type=date,JSONPath=`.metadata.creationTimestamp`
type Destination struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// Spec is what was found.
	Spec DestinationSpec `json:"spec,omitempty,omitzero"`
	// Status is what policies made of it.
	Status DestinationStatus `json:"status,omitempty,omitzero"`
}

// DestinationSpec is what was found of a Destination.
//
// +kubebuilder:validation:XValidation:rule="!(has(self.kubeService) && has(self.externalService))",message="a Destination is of one sort: set kubeService or externalService, not both"
type DestinationSpec struct {
	// KubeService is a Service of a registered cluster.
	KubeService *KubeService `json:"kubeService,omitempty"`
	// ExternalService is outside the registered clusters.
	ExternalService *ExternalService `json:"externalService,omitempty"`
	// Mesh that it is part of; absent for external services.
	Mesh *commonv1.ObjectRef `json:"mesh,omitempty"`
}

// ExternalService is a service outside the registered clusters. Discovery never makes one; users may.
type ExternalService struct {
	// Name of the service.
	Name string `json:"name,omitempty"`
	// Hosts are the names by which it is called.
	Hosts []string `json:"hosts,omitempty"`
	// Addresses are the virtual IPs by which it is called.
	Addresses []string `json:"addresses,omitempty"`
	// Ports that it offers.
	// +kubebuilder:validation:MaxItems=100
	Ports []ExternalServicePort `json:"ports,omitempty"`
	// Endpoints behind it.
	Endpoints []ExternalServiceEndpoint `json:"endpoints,omitempty"`
}

// ExternalServicePort is a port of an external service.
type ExternalServicePort struct {
	// Number of the port.
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=65535
	Number uint32 `json:"number,omitempty"`
	// Name of the port.
	Name string `json:"name,omitempty"`
	// Protocol spoken on it: HTTP, HTTPS, GRPC, HTTP2, MONGO, TCP or TLS.
	// +kubebuilder:validation:MaxLength=16
	// +kubebuilder:validation:XValidation:rule="self.upperAscii() in ['HTTP', 'HTTPS', 'GRPC', 'HTTP2', 'MONGO', 'TCP', 'TLS']",message="must be one of HTTP, HTTPS, GRPC, HTTP2, MONGO, TCP and TLS, in upper or lower case"
	Protocol string `json:"protocol,omitempty"`
}

// ExternalServiceEndpoint is an address behind an external service.
type ExternalServiceEndpoint struct {
	// Address is a DNS name or an IP.
	Address string `json:"address,omitempty"`
	// Ports are the numbers, by name of the service's port.
	Ports map[string]uint32 `json:"ports,omitempty"`
}

// DestinationList is a list of Destinations.
//
// +kubebuilder:object:root=true
type DestinationList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`
	// Items of the list.
	Items []Destination `json:"items"`
}
