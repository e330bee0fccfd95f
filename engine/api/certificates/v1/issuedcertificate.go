package v1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	commonv1 "github.com/meshctl/meshctl/engine/api/common/v1"
)

// IssuedCertificate asks the agent of its cluster for a certificate, signed by a root of a VirtualMesh: an intermediate CA for
// a mesh, or a certificate for its gateways (spec.trust.usage). The private key is made by the agent and never leaves the
// cluster.
//
// +kubebuilder:object:root=true
// +kubebuilder:subresource:status
// +kubebuilder:resource:path=issuedcertificates,scope=Namespaced,shortName=icert,categories={meshctl,mesh-certs}
// +kubebuilder:printcolumn:name="State",type=string,JSONPath=`.status.state`,description="Where the certificate stands"
// +kubebuilder:printcolumn:name="Secret",type=string,JSONPath=`.spec.issuedCertificateSecret.name`,description="Where the result is written"
// +kubebuilder:printcolumn:name="Expires",type=string,JSONPath=`.status.trust.issuer.notAfter`,description="When the certificate in the Secret expires"
// +kubebuilder:printcolumn:name="Waiting-For",type=string,JSONPath=`.status.trust.waitingFor`,priority=1,description="What has to happen next"
// +kubebuilder:printcolumn:name="Host",type=string,JSONPath=`.spec.hosts[0]`,priority=1,description="Its first subject alternative name"
// +kubebuilder:printcolumn:name="Error",type=string,JSONPath=`.status.error`,description="Why the last attempt failed"
// +kubebuilder:printcolumn:name="Age",type=date,JSONPath=`.metadata.creationTimestamp`
type IssuedCertificate struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// Spec is the certificate that is wanted.
	Spec IssuedCertificateSpec `json:"spec,omitempty,omitzero"`
	// Status is where it stands.
	Status IssuedCertificateStatus `json:"status,omitempty,omitzero"`
}

// IssuedCertificateSpec describes the certificate that is wanted, who signs it and where it goes.
//
// +kubebuilder:validation:XValidation:rule="!(has(self.glooMeshCa) && has(self.agentCa))",message="set glooMeshCa (signed by the management plane) or agentCa (signed by Vault), not both"
type IssuedCertificateSpec struct {
	// Hosts are the subject alternative names, such as spiffe://cluster.local/ns/istio-system/sa/istiod.
	Hosts []string `json:"hosts,omitempty"`
	// Org is the organisation. Deprecated: use certOptions.orgName.
	Org string `json:"org,omitempty"`
	// SigningCertificateSecret is the root's Secret on the management cluster. Deprecated: use
	// glooMeshCa.signingCertificateSecret.
	SigningCertificateSecret *commonv1.ObjectRef `json:"signingCertificateSecret,omitempty"`
	// IssuedCertificateSecret is where the agent puts the result on its cluster. Without it nothing is written there: the
	// signing agent keeps the result in memory.
	IssuedCertificateSecret *commonv1.ObjectRef `json:"issuedCertificateSecret,omitempty"`
	// PodBounceDirective lists the pods that are to restart once the certificate has been issued.
	PodBounceDirective *commonv1.ObjectRef `json:"podBounceDirective,omitempty"`
	// CertOptions are the properties of the certificate.
	CertOptions *CommonCertOptions `json:"certOptions,omitempty"`
	// GlooMeshCa has the management plane sign.
	GlooMeshCa *GlooMeshCA `json:"glooMeshCa,omitempty"`
	// AgentCa has a CA sign that the agent itself talks to.
	AgentCa *AgentCA `json:"agentCa,omitempty"`
	// Trust is what the workloads of the mesh are to trust. Not part of Gloo Mesh 1.x.
	Trust *TrustRequest `json:"trust,omitempty"`
}

// GlooMeshCA is a root that the management plane holds.
type GlooMeshCA struct {
	// SigningCertificateSecret is the root's Secret on the management cluster.
	SigningCertificateSecret *commonv1.ObjectRef `json:"signingCertificateSecret,omitempty"`
}

// AgentCA is a CA that the agent talks to.
type AgentCA struct {
	// Vault is a HashiCorp Vault.
	Vault *VaultCA `json:"vault,omitempty"`
}

// IssuedCertificateState is where an IssuedCertificate stands.
//
// +kubebuilder:validation:Enum=PENDING;REQUESTED;ISSUED;FINISHED;FAILED
type IssuedCertificateState string

const (
	// IssuedCertificatePending: not acted on yet.
	IssuedCertificatePending IssuedCertificateState = "PENDING"
	// IssuedCertificateRequested: a key exists and a CertificateRequest waits to be signed.
	IssuedCertificateRequested IssuedCertificateState = "REQUESTED"
	// IssuedCertificateIssued: the result is in its Secret; pods may still have to restart.
	IssuedCertificateIssued IssuedCertificateState = "ISSUED"
	// IssuedCertificateFinished: the certificate is in use.
	IssuedCertificateFinished IssuedCertificateState = "FINISHED"
	// IssuedCertificateFailed: the last attempt failed and will be made again.
	IssuedCertificateFailed IssuedCertificateState = "FAILED"
)

// IssuedCertificateStatus is written by the agent.
type IssuedCertificateStatus struct {
	// ObservedGeneration is the generation of the spec that this status is about.
	ObservedGeneration int64 `json:"observedGeneration,omitempty"`
	// Error says why the last attempt failed.
	Error string `json:"error,omitempty"`
	// State is where the certificate stands.
	State IssuedCertificateState `json:"state,omitempty"`
	// Trust is what the mesh was seen to trust and to present. Not part of Gloo Mesh 1.x.
	Trust *TrustReport `json:"trust,omitempty"`
}

// IssuedCertificateList is a list of IssuedCertificates.
//
// +kubebuilder:object:root=true
type IssuedCertificateList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`
	// Items of the list.
	Items []IssuedCertificate `json:"items"`
}
