package v1

import metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

// TrustUsage is what a certificate is for.
//
// +kubebuilder:validation:Enum="";Gateway
type TrustUsage string

const (
	// TrustUsageCA is an intermediate CA, with which the control plane of a mesh signs the certificates of workloads. It is
	// written to istiod's Secret cacerts.
	TrustUsageCA TrustUsage = ""
	// TrustUsageGateway is a certificate that the east-west gateways of a mesh present to those of other meshes, as servers and
	// as clients; it signs nothing. It is written, with the roots to trust, to a Secret of type kubernetes.io/tls.
	TrustUsageGateway TrustUsage = "Gateway"
)

// TrustRequest is what the workloads of a mesh, or its gateways, are to trust, and how the agent may get there. Roots are named
// by the SHA-256 fingerprint of their certificate, in lower-case hexadecimal digits.
type TrustRequest struct {
	// Usage is what the certificate is for: omitted, a CA for the control plane of the mesh; Gateway, a certificate for its
	// east-west gateways. It stays what it was as long as the IssuedCertificate exists. With Gateway, only root and bundle
	// count besides it.
	Usage TrustUsage `json:"usage,omitempty"`
	// Root is the root that is to sign the certificate. The agent puts a certificate of it to use only when all workloads of
	// the mesh trust it. A certificate of gateways is put to use at once: who asks for it has seen that all who verify it trust
	// the root.
	// +kubebuilder:validation:MaxLength=64
	// +kubebuilder:validation:XValidation:rule="self == '' || self.matches('^[0-9a-f]{64}$')",message="must be the SHA-256 fingerprint of a certificate: 64 lower-case hexadecimal digits"
	Root string `json:"root,omitempty"`
	// Bundle are the roots that all workloads of the VirtualMesh are to trust, as PEM certificates. The agent adds those that
	// the workloads of the mesh itself still present.
	// +kubebuilder:validation:MaxLength=65536
	Bundle string `json:"bundle,omitempty"`
	// ReplaceUserSecret lets the agent replace a Secret that a user made. It keeps a copy, and puts it back when the mesh
	// leaves the VirtualMesh.
	ReplaceUserSecret bool `json:"replaceUserSecret,omitempty"`
	// ControlPlane are the labels of the control plane's pods, in the namespace of issuedCertificateSecret.
	ControlPlane map[string]string `json:"controlPlane,omitempty"`
	// TrustDomains restrict the SPIFFE identities that the certificate may sign; empty for no restriction.
	// +kubebuilder:validation:MaxItems=100
	TrustDomains []string `json:"trustDomains,omitempty"`
	// NamespaceTimeout is how long the mesh waits for a namespace whose workloads could have what the control plane gives
	// them, and do not have it; then it goes on without that namespace. 48h, twice the life of Istio's certificates, if
	// omitted. The namespace of the control plane is always waited for.
	// +kubebuilder:validation:XValidation:rule="duration(self) >= duration('1m') && duration(self) <= duration('8760h')",message="must be between 1m and 8760h"
	NamespaceTimeout *metav1.Duration `json:"namespaceTimeout,omitempty"`
	// LeaveOut are namespaces that are not waited for at all.
	// +kubebuilder:validation:MaxItems=1000
	LeaveOut []string `json:"leaveOut,omitempty"`
}

// TrustReport is what the agent found. Roots are named by fingerprint, as in a TrustRequest.
type TrustReport struct {
	// Issuer is the certificate in the Secret, with which the control plane signs as soon as it has taken it up. Omitted if
	// there is none: the control plane signs with a root of its own. With usage Gateway it is that of the gateways.
	Issuer *CertificateInfo `json:"issuer,omitempty"`
	// UserSecret says that a user made the Secret, so that the agent leaves it alone.
	UserSecret bool `json:"userSecret,omitempty"`
	// Trusted are the roots that the control plane hands out, that are in the ConfigMap istio-ca-root-cert of every namespace
	// with workloads, and that all workloads trust, except for namespaces that are left out; ascending. With usage Gateway, those that all gateways trust: what they have
	// loaded cannot be seen, so that a root counts when it has been in the Secret for a minute.
	// +kubebuilder:validation:MaxItems=64
	Trusted []string `json:"trusted,omitempty"`
	// Presented are the roots of the certificates that the control plane signs and that workloads present or may still
	// present, except for those of namespaces that are left out; ascending. With usage Gateway, the root of Issuer, and, until a minute after it came into the Secret, those
	// before it.
	// +kubebuilder:validation:MaxItems=64
	Presented []string `json:"presented,omitempty"`
	// ControlPlane counts the pods of the control plane that sign with Issuer and hand out the roots of the Secret.
	ControlPlane *TrustProgress `json:"controlPlane,omitempty"`
	// Namespaces counts those with workloads whose ConfigMap istio-ca-root-cert has the roots of the Secret.
	Namespaces *TrustProgress `json:"namespaces,omitempty"`
	// Trusting counts the workloads that trust the roots of the request.
	Trusting *TrustProgress `json:"trusting,omitempty"`
	// Presenting counts the workloads that present a certificate of the requested root.
	Presenting *TrustProgress `json:"presenting,omitempty"`
	// Signing is since when, by the agent's clock, all of the control plane has signed with the root of Issuer, and HandedOut
	// since when it has handed out each root. What workloads hold is derived from them where it cannot be seen.
	Signing *RootSince `json:"signing,omitempty"`
	// HandedOut is described at Signing.
	// +kubebuilder:validation:MaxItems=64
	HandedOut []RootSince `json:"handedOut,omitempty"`
	// Behind are the namespaces with workloads that could have what the control plane gives them, and do not have it. Those
	// that have been so for the longest time come first. The counts above are without those that are left out.
	// +kubebuilder:validation:MaxItems=1000
	Behind []NamespaceBehind `json:"behind,omitempty"`
	// WaitingFor says what has to happen next, and who has to act if it is not the agent; empty if nothing has to.
	WaitingFor string `json:"waitingFor,omitempty"`
	// ClockSkewSeconds is by how much the agent's clock is ahead of the API server's, if it is more than a few seconds.
	ClockSkewSeconds int64 `json:"clockSkewSeconds,omitempty"`
	// VerifiedAt is when the agent looked last. It is written at most every few minutes unless something changes.
	VerifiedAt *metav1.Time `json:"verifiedAt,omitempty"`
}

// NamespaceBehind is a namespace with workloads that could trust what the control plane hands out, and present certificates
// of the root with which it signs, and do not.
type NamespaceBehind struct {
	// Namespace of the workloads.
	Namespace string `json:"namespace"`
	// Since is when it was first seen, by the agent's clock.
	Since *metav1.Time `json:"since,omitempty"`
	// Workloads is how many there are; 0 if only the ConfigMap istio-ca-root-cert lacks the roots.
	Workloads int32 `json:"workloads,omitempty"`
	// First is one of them, namespace/name.
	First string `json:"first,omitempty"`
	// LeftOut says that nobody waits for the namespace: its time is over, or the request names it. What its workloads hold
	// may be trusted by nobody, and they may trust nobody.
	LeftOut bool `json:"leftOut,omitempty"`
	// Presented are the roots of the certificates that the workloads of a namespace that is left out present or may still
	// present; ascending.
	// +kubebuilder:validation:MaxItems=64
	Presented []string `json:"presented,omitempty"`
}

// CertificateInfo describes a certificate.
type CertificateInfo struct {
	// Fingerprint of the certificate, and Root that of the root at the end of its chain.
	Fingerprint string `json:"fingerprint,omitempty"`
	// Root is described at Fingerprint.
	Root string `json:"root,omitempty"`
	// SerialNumber in hexadecimal digits.
	SerialNumber string `json:"serialNumber,omitempty"`
	// NotBefore is when the certificate becomes valid.
	NotBefore *metav1.Time `json:"notBefore,omitempty"`
	// NotAfter is when the certificate expires.
	NotAfter *metav1.Time `json:"notAfter,omitempty"`
}

// TrustProgress counts what has got so far.
type TrustProgress struct {
	// Done of Total.
	Done int32 `json:"done"`
	// Total is how many there are.
	Total int32 `json:"total"`
	// Waiting are the first of those that have not, as namespace/name or as a name; at most ten.
	// +kubebuilder:validation:MaxItems=10
	Waiting []string `json:"waiting,omitempty"`
	// Unseen is how many of those done were derived from when they started, because they could not be connected to.
	Unseen int32 `json:"unseen,omitempty"`
}

// RootSince is a root and a time.
type RootSince struct {
	// Root by fingerprint.
	Root string `json:"root,omitempty"`
	// Since when.
	Since *metav1.Time `json:"since,omitempty"`
}
