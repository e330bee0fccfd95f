package v1

import metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

// CertificateRequest carries a signing request from the agent of a cluster to the management plane, and the signed
// certificate back. It has the name and namespace of its IssuedCertificate.
//
// +kubebuilder:object:root=true
// +kubebuilder:subresource:status
// +kubebuilder:resource:path=certificaterequests,scope=Namespaced,shortName=meshcr,categories={meshctl,mesh-certs}
// +kubebuilder:printcolumn:name="State",type=string,JSONPath=`.status.state`,description="Where the request stands"
// +kubebuilder:printcolumn:name="Error",type=string,JSONPath=`.status.error`,description="Why signing failed"
// +kubebuilder:printcolumn:name="Age",type=date,JSONPath=`.metadata.creationTimestamp`
type CertificateRequest struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// Spec is the request.
	Spec CertificateRequestSpec `json:"spec,omitempty,omitzero"`
	// Status is the answer.
	Status CertificateRequestStatus `json:"status,omitempty,omitzero"`
}

// CertificateRequestSpec is what is to be signed.
//
// +kubebuilder:validation:XValidation:rule="has(self.certificateSigningRequest) && size(self.certificateSigningRequest) > 0",message="certificateSigningRequest is needed: a PEM encoded PKCS#10 request, in base64"
type CertificateRequestSpec struct {
	// CertificateSigningRequest is a PEM encoded PKCS#10 request; base64 in JSON and YAML.
	// +kubebuilder:validation:MaxLength=65536
	CertificateSigningRequest []byte `json:"certificateSigningRequest,omitempty"`
}

// CertificateRequestState is where a CertificateRequest stands.
//
// +kubebuilder:validation:Enum=PENDING;FINISHED;FAILED
type CertificateRequestState string

const (
	// CertificateRequestPending: not signed yet.
	CertificateRequestPending CertificateRequestState = "PENDING"
	// CertificateRequestFinished: signed.
	CertificateRequestFinished CertificateRequestState = "FINISHED"
	// CertificateRequestFailed: could not be signed.
	CertificateRequestFailed CertificateRequestState = "FAILED"
)

// CertificateRequestStatus is written by the management plane.
type CertificateRequestStatus struct {
	// ObservedGeneration is the generation of the spec that this status is about.
	ObservedGeneration int64 `json:"observedGeneration,omitempty"`
	// Error says why signing failed.
	Error string `json:"error,omitempty"`
	// State is where the request stands.
	State CertificateRequestState `json:"state,omitempty"`
	// SignedCertificate is the PEM encoded result; base64 in JSON and YAML.
	SignedCertificate []byte `json:"signedCertificate,omitempty"`
	// SigningRootCa is the PEM encoded certificate of the root that signed; base64 in JSON and YAML.
	SigningRootCa []byte `json:"signingRootCa,omitempty"`
}

// CertificateRequestList is a list of CertificateRequests.
//
// +kubebuilder:object:root=true
type CertificateRequestList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`
	// Items of the list.
	Items []CertificateRequest `json:"items"`
}
