package v1

import (
	certificatesv1 "github.com/meshctl/meshctl/engine/api/certificates/v1"
	commonv1 "github.com/meshctl/meshctl/engine/api/common/v1"
)

// MTLSConfig gives the members of a VirtualMesh a common trust.
//
// +kubebuilder:validation:XValidation:rule="[has(self.shared), has(self.limited)].filter(x, x).size() == 1",message="say how the meshes trust each other: set exactly one of shared and limited; shared: {} issues from a root that is made for this VirtualMesh"
type MTLSConfig struct {
	// Shared gives all members intermediates of one root.
	Shared *SharedTrust `json:"shared,omitempty"`
	// Limited lets each member keep its own root: only the gateways trust each other.
	Limited *LimitedTrust `json:"limited,omitempty"`
	// AutoRestartPods restarts the control plane and the sidecars once they need to pick up new certificates.
	AutoRestartPods bool `json:"autoRestartPods,omitempty"`
	// ReplaceUserCertificates lets the agents replace a Secret cacerts that a user made. A copy is kept, and put back when the
	// mesh leaves the VirtualMesh. Without it, such a mesh keeps its certificates, and is INVALID unless they have the root of
	// the VirtualMesh. Not part of Gloo Mesh 1.x.
	ReplaceUserCertificates bool `json:"replaceUserCertificates,omitempty"`
}

// Issued is what is asked of the root of the certificates that members, or their gateways, are given; nil if they are given
// none. With Limited there are no options.
func (m *MTLSConfig) Issued() *SharedTrust {
	switch {
	case m == nil:
		return nil
	case m.Limited != nil:
		return &SharedTrust{}
	}
	return m.Shared
}

// LimitedTrust lets each member keep its own root. Requests to another member pass a gateway of the caller's mesh and one of
// the other mesh. The gateways have certificates of a root that is made for the VirtualMesh; callers and services see gateways
// of their own mesh only. So it is the gateways that tell callers of other members apart, for a connection as a whole; to
// hand-written policies, such callers are gateways.
type LimitedTrust struct{}

// SharedTrust gives all members intermediates of one root. Without a CA the root is made here and signs itself.
//
// +kubebuilder:validation:XValidation:rule="!(has(self.rootCertificateAuthority) && has(self.intermediateCertificateAuthority))",message="set rootCertificateAuthority or intermediateCertificateAuthority, not both"
type SharedTrust struct {
	// RootCertificateAuthority is a root that is held on the management cluster.
	RootCertificateAuthority *RootCertificateAuthority `json:"rootCertificateAuthority,omitempty"`
	// IntermediateCertificateAuthority is a CA elsewhere that signs the intermediates.
	IntermediateCertificateAuthority *IntermediateCertificateAuthority `json:"intermediateCertificateAuthority,omitempty"`
	// TrustDomainPerMesh requires that no two members have a trust domain in common, also not as an alias, so that policies
	// tell the callers of clusters apart. The CA of a member can then sign for its own trust domain and its aliases only (RFC
	// 5280, 4.2.1.10), and members that cannot be told apart do not begin to share services. Before a member moves to another
	// trust domain, add that to its trustDomainAliases. Not for members in ambient mode: ztunnel does not know such
	// restrictions. Not part of Gloo Mesh 1.x.
	TrustDomainPerMesh bool `json:"trustDomainPerMesh,omitempty"`
	// IntermediateCertOptions are the properties of the intermediates.
	IntermediateCertOptions *certificatesv1.CommonCertOptions `json:"intermediateCertOptions,omitempty"`
}

// RootCertificateAuthority is a root that is held on the management cluster.
//
// +kubebuilder:validation:XValidation:rule="!(has(self.generated) && has(self.secret))",message="set generated (a root made for this VirtualMesh) or secret (your own root), not both"
type RootCertificateAuthority struct {
	// Generated makes a root that signs itself.
	Generated *certificatesv1.CommonCertOptions `json:"generated,omitempty"`
	// Secret has the user's own root.
	// +kubebuilder:validation:XValidation:rule=`has(self.name) && has(self.namespace)`,message="name and namespace are both needed to refer to a Secret"
	Secret *commonv1.ObjectRef `json:"secret,omitempty"`
}

// IntermediateCertificateAuthority is a CA elsewhere that signs the intermediates.
//
// +kubebuilder:validation:XValidation:rule="has(self.vault)",message="vault is needed: it is the only CA of this sort"
type IntermediateCertificateAuthority struct {
	// Vault is a HashiCorp Vault.
	Vault *certificatesv1.VaultCA `json:"vault,omitempty"`
}
