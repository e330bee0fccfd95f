package v1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	certificatesv1 "github.com/meshctl/meshctl/engine/api/certificates/v1"
	commonv1 "github.com/meshctl/meshctl/engine/api/common/v1"
)

// TrustStage is where the trust of a VirtualMesh stands. The stages of a rotation follow one another, from DISTRIBUTING to
// ESTABLISHED; a new member goes through the first ones alone.
//
// +kubebuilder:validation:Enum=WAITING;DISTRIBUTING;ISSUING;RETIRING;ESTABLISHED
type TrustStage string

const (
	// TrustWaiting: there is no root to sign with.
	TrustWaiting TrustStage = "WAITING"
	// TrustDistributing: not all members trust the root that is to sign.
	TrustDistributing TrustStage = "DISTRIBUTING"
	// TrustIssuing: all members trust it, and not all present certificates of it.
	TrustIssuing TrustStage = "ISSUING"
	// TrustRetiring: all members present certificates of it, and still trust a root that nobody uses any more. Until now, the
	// former root can be returned to.
	TrustRetiring TrustStage = "RETIRING"
	// TrustEstablished: all members trust the root and present certificates of it, and trust no other root of the VirtualMesh.
	TrustEstablished TrustStage = "ESTABLISHED"
)

// TrustStatus is where the common trust of a VirtualMesh stands. Roots are named by the SHA-256 fingerprint of their
// certificate, in lower-case hexadecimal digits.
type TrustStatus struct {
	// Usage is what the members' certificates are for: omitted, CAs for their control planes; Gateway, with limited trust.
	Usage certificatesv1.TrustUsage `json:"usage,omitempty"`
	// Stage is where it stands.
	Stage TrustStage `json:"stage,omitempty"`
	// Message says what the stage waits for, and who has to act if that is a user.
	Message string `json:"message,omitempty"`
	// Paused says that an annotation holds the stage.
	Paused bool `json:"paused,omitempty"`
	// Root is the one that signs, or is to sign.
	Root string `json:"root,omitempty"`
	// Roots are those that members have to trust, ascending.
	// +kubebuilder:validation:MaxItems=32
	Roots []TrustedRoot `json:"roots,omitempty"`
	// Members are the first hundred meshes, those that are waited for first.
	// +kubebuilder:validation:MaxItems=100
	Members []MemberTrust `json:"members,omitempty"`
	// Established are the members that have had the common trust at least once, ascending: their services are federated. A
	// member whose agent no longer answers stays in the list.
	// +kubebuilder:validation:MaxItems=1000
	Established []commonv1.ObjectRef `json:"established,omitempty"`
	// TrustDomains are recorded of its members, ascending by mesh, if mtlsConfig asks for a trust domain of each. They stay
	// theirs, whatever their settings say later, until an administrator accepts something else.
	// +kubebuilder:validation:MaxItems=1000
	TrustDomains []MemberTrustDomains `json:"trustDomains,omitempty"`
}

// MemberTrustDomains are the trust domains for which a member may have a CA.
type MemberTrustDomains struct {
	// Mesh is the name of the member.
	Mesh string `json:"mesh"`
	// Domains begin with its trust domain; the others are aliases.
	Domains []string `json:"domains"`
}

// TrustedRoot is a root certificate.
type TrustedRoot struct {
	// Fingerprint of the certificate.
	Fingerprint string `json:"fingerprint"`
	// NotAfter is when it expires.
	NotAfter *metav1.Time `json:"notAfter,omitempty"`
}

// MemberTrust is where the trust of one member stands.
type MemberTrust struct {
	// Mesh is the member.
	Mesh commonv1.ObjectRef `json:"mesh"`
	// State is that of its IssuedCertificate; omitted if its agent has not answered.
	State string `json:"state,omitempty"`
	// Root is that of its certificate; omitted if it has none of the VirtualMesh yet.
	Root string `json:"root,omitempty"`
	// NotAfter is when its certificate expires.
	NotAfter *metav1.Time `json:"notAfter,omitempty"`
	// Message says what it waits for.
	Message string `json:"message,omitempty"`
}
