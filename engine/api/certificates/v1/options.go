package v1

import commonv1 "github.com/meshctl/meshctl/engine/api/common/v1"

// Defaults of CommonCertOptions. They are applied by the code that issues, never by the API server, so that a manifest
// reads back as it was written.
const (
	// DefaultTtlDays is the life of a certificate in days.
	DefaultTtlDays = 365
	// DefaultRsaKeySizeBits is the size of an RSA key in bits.
	DefaultRsaKeySizeBits = 4096
	// DefaultOrgName is the organisation of a root certificate.
	DefaultOrgName = "gloo-mesh"
	// DefaultSecretRotationGracePeriodRatio is the share of an intermediate's life that is left when it is renewed.
	DefaultSecretRotationGracePeriodRatio = 0.10
)

// CommonCertOptions are the properties of a certificate to be issued.
type CommonCertOptions struct {
	// TtlDays is the life of the certificate in days; 365 if omitted or 0.
	// +kubebuilder:validation:Minimum=0
	// +kubebuilder:validation:Maximum=36500
	TtlDays uint32 `json:"ttlDays,omitempty"`
	// RsaKeySizeBytes is the size of the RSA key. The value is in bits, despite the name; 4096 if omitted or 0.
	// +kubebuilder:validation:XValidation:rule="self == 0 || (self >= 2048 && self <= 16384)",message="is in bits, despite its name, and must be from 2048 to 16384; use 2048, 3072 or 4096, or leave it out for 4096"
	RsaKeySizeBytes uint32 `json:"rsaKeySizeBytes,omitempty"`
	// OrgName is the organisation in the certificate's subject; "gloo-mesh" if omitted.
	OrgName string `json:"orgName,omitempty"`
	// SecretRotationGracePeriodRatio is the share of the certificate's life before its end at which it is renewed; 0.10
	// for intermediates if omitted or 0.
	// +kubebuilder:validation:XValidation:rule="self >= 0.0 && self < 1.0",message="is a share of the certificate's life: from 0 to less than 1, for example 0.1 to renew when a tenth of it is left"
	SecretRotationGracePeriodRatio float64 `json:"secretRotationGracePeriodRatio,omitempty"`
}

// VaultCA is a HashiCorp Vault that signs intermediates.
//
// +kubebuilder:validation:XValidation:rule="[has(self.tokenSecretRef), has(self.kubernetesAuth)].filter(x, x).size() == 1",message="say how to log in to Vault: set exactly one of tokenSecretRef and kubernetesAuth"
// +kubebuilder:validation:XValidation:rule="has(self.server) && has(self.caPath)",message="server (the URL of Vault) and caPath (its sign endpoint, for example pki/root/sign-intermediate) are both needed"
type VaultCA struct {
	// CaPath is Vault's endpoint that signs: MOUNT/root/sign-intermediate or MOUNT/issuer/NAME/sign-intermediate, for example
	// pki/root/sign-intermediate.
	CaPath string `json:"caPath,omitempty"`
	// CsrPath is Vault's endpoint that generates a request, for example pki_int/intermediate/generate/exported. It has no
	// effect: the agent makes the key, which never leaves its cluster.
	CsrPath string `json:"csrPath,omitempty"`
	// Server is the URL of Vault. The administrator of each cluster has to allow it, by `meshctl cluster register
	// --vault-server`.
	// +kubebuilder:validation:MaxLength=2048
	// +kubebuilder:validation:XValidation:rule="self.startsWith('http://') || self.startsWith('https://')",message="must be a URL that starts with http:// or https://"
	Server string `json:"server,omitempty"`
	// CaBundle is the PEM bundle that verifies Vault's own certificate; base64 in JSON and YAML.
	CaBundle []byte `json:"caBundle,omitempty"`
	// Namespace is the Vault namespace.
	Namespace string `json:"namespace,omitempty"`
	// TokenSecretRef is the Secret that has the Vault token under the key "token". It must be in the agent's namespace of each
	// managed cluster.
	TokenSecretRef *commonv1.ObjectRef `json:"tokenSecretRef,omitempty"`
	// KubernetesAuth logs in with a Kubernetes service account.
	KubernetesAuth *VaultKubernetesAuth `json:"kubernetesAuth,omitempty"`
}

// VaultKubernetesAuth logs in to Vault by its Kubernetes method.
//
// +kubebuilder:validation:XValidation:rule="has(self.role) && size(self.role) > 0",message="role is needed: the Vault role that the service account may take"
// +kubebuilder:validation:XValidation:rule="!(has(self.serviceAccountRef) && has(self.mountedSaPath))",message="set serviceAccountRef or mountedSaPath, not both"
type VaultKubernetesAuth struct {
	// MountPath is where the method is mounted in Vault; /v1/auth/kubernetes if omitted.
	MountPath string `json:"mountPath,omitempty"`
	// Role is the Vault role to log in as.
	// +kubebuilder:validation:MaxLength=512
	Role string `json:"role,omitempty"`
	// SecretTokenKey is the name of the file with the token in mountedSaPath; "token" if omitted.
	SecretTokenKey string `json:"secretTokenKey,omitempty"`
	// ServiceAccountRef is the service account that logs in, with a token that the agent makes of it. It must be in the
	// agent's namespace of each managed cluster.
	ServiceAccountRef *commonv1.ObjectRef `json:"serviceAccountRef,omitempty"`
	// MountedSaPath is the folder of a mounted service-account token for Vault only, below /var/run/secrets; that of the token
	// which `meshctl cluster register --vault-server` mounts if omitted.
	MountedSaPath string `json:"mountedSaPath,omitempty"`
}
