package agent

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/meshctl/meshctl/certs/pki"
	certificatesv1 "github.com/meshctl/meshctl/engine/api/certificates/v1"
	"github.com/meshctl/meshctl/engine/snapshot"
)

// Names of objects and types (behaviour.md, section 6.1).
const (
	// FieldManager owns the fields that the agent applies.
	FieldManager = "meshctl-agent"
	// LeaseName is the Lease of the agents of a namespace.
	LeaseName = snapshot.AgentLease
	// CACertsName is where istiod reads its CA from. Gateways load theirs from snapshot.GatewaySecret.
	CACertsName = "cacerts"
	// BackupName is the copy of the Secret cacerts that was there before.
	BackupName = "cacerts-before-meshctl"
	// SelfSignedName is where istiod keeps the root that it makes for itself.
	SelfSignedName = "istio-ca-secret"
	// KeyType and IssuedType are the types of the Secrets of a key, and of cacerts.
	KeyType    corev1.SecretType = snapshot.KeySecretType
	IssuedType corev1.SecretType = "certificates.mesh.gloo.solo.io/issued_certificate"

	// istioRootType is that of a Secret with a root that istiod made for itself.
	istioRootType corev1.SecretType = "istio.io/ca-root"

	privateKey = "private-key"
	// istioGenerated is the key of a cacerts that istiod made for itself.
	istioGenerated = "istio-generated"
)

// Annotations of what the agent writes.
const (
	prefix = "agent.certificates.mesh.gloo.solo.io/"
	// OwnerAnnotation is the IssuedCertificate, as namespace/name, for which a Secret was written.
	OwnerAnnotation = prefix + "issued-certificate"
	// optionsAnnotation is what a key, a request or the certificate in cacerts was made for.
	optionsAnnotation = prefix + "options"
	// recordAnnotation of a CertificateRequest outlives the IssuedCertificate; see record.
	recordAnnotation = prefix + "record"
	// contentAnnotation of cacerts, or the Secret of gateways, is the sum of what was written, so that an edit shows.
	contentAnnotation = prefix + "content"
	// replacedAnnotation of cacerts names the Secret whose CA signed before.
	replacedAnnotation = prefix + "replaced"
	// metadataAnnotation of a backup has the labels and annotations of the original.
	metadataAnnotation = prefix + "metadata"
	// loadedAnnotation of the Secret of gateways is what they may still have loaded besides its content; see loaded.
	loadedAnnotation = prefix + "loaded"
	// RefreshAnnotation of a pod of a control plane is when its kubelet was asked to pass the Secret on (RFC 3339).
	RefreshAnnotation = prefix + "refreshed-at"
	// leftAnnotation of cacerts says why it was left when the mesh left.
	leftAnnotation = prefix + "left"
)

// record is what has to be known of a mesh after its IssuedCertificate is gone.
type record struct {
	// Usage is what the certificate is for.
	Usage certificatesv1.TrustUsage `json:"usage,omitempty"`
	// Namespace and Name are those of the Secret cacerts, or of that of gateways.
	Namespace string `json:"namespace"`
	Name      string `json:"name"`
	// ControlPlane are the labels of the control plane's pods.
	ControlPlane map[string]string `json:"controlPlane,omitempty"`
	// Restart is which pods may be restarted, as the last PodBounceDirective said: a mesh that leaves may restart what it could
	// to join.
	Restart []certificatesv1.PodSelector `json:"restart,omitempty"`
	// RequestedAt is when the request was made, in seconds.
	RequestedAt int64 `json:"requestedAt,omitempty"`
}

// forGateways: the certificate is for gateways, not for the control plane.
func (r record) forGateways() bool { return r.Usage == certificatesv1.TrustUsageGateway }

func (r record) text() string {
	text, err := json.Marshal(r)
	if err != nil { // strings and numbers only
		panic(err)
	}
	return string(text)
}

// recordOf reads the record of a request; nil if there is none.
func recordOf(request *certificatesv1.CertificateRequest) *record {
	var r record
	if request == nil || json.Unmarshal([]byte(request.Annotations[recordAnnotation]), &r) != nil || r.Namespace == "" || r.Name == "" {
		return nil
	}
	return &r
}

// maxRestart bounds the selectors in a record. The management plane writes one for each class of pods.
const maxRestart = 100

func (r record) since(now time.Time) time.Duration {
	since := now.Sub(time.Unix(r.RequestedAt, 0))
	if since < 0 { // the clock was set back
		return retryAfter
	}
	return since
}

// optionsSum names the options of a certificate; another sum means another certificate.
func optionsSum(spec *certificatesv1.IssuedCertificateSpec) string {
	hosts := slices.Clone(spec.Hosts)
	slices.Sort(hosts)
	domains := slices.Clone(spec.Trust.TrustDomains)
	slices.Sort(domains)
	var ttl uint32
	if spec.CertOptions != nil {
		ttl = spec.CertOptions.TtlDays
	}
	return sum(struct {
		Hosts, Domains []string
		Org, Root      string
		Bits           int
		TTL            uint32
	}{slices.Compact(hosts), slices.Compact(domains), organization(spec), spec.Trust.Root, keyBits(spec), ttl})
}

// contentSum is of the certificates only: nothing is derived from the key.
func contentSum(data map[string][]byte) string {
	return sum([][]byte{data[pki.CACertKey], data[pki.CAChainKey], data[pki.RootCertKey]})
}

// gatewaySum is the same for the Secret of gateways.
func gatewaySum(data map[string][]byte) string {
	return sum([][]byte{data[pki.TLSCertKey], data[pki.TLSRootKey]})
}

func sum(value any) string {
	text, err := json.Marshal(value)
	if err != nil { // strings and numbers only
		panic(err)
	}
	all := sha256.Sum256(text)
	return hex.EncodeToString(all[:16])
}

// organization of the certificate; that of the original.
func organization(spec *certificatesv1.IssuedCertificateSpec) string {
	switch {
	case spec.CertOptions != nil && spec.CertOptions.OrgName != "":
		return spec.CertOptions.OrgName
	case spec.Org != "":
		return spec.Org
	}
	return "Istio"
}

func keyBits(spec *certificatesv1.IssuedCertificateSpec) int {
	if spec.CertOptions != nil && spec.CertOptions.RsaKeySizeBytes != 0 {
		return int(spec.CertOptions.RsaKeySizeBytes)
	}
	return certificatesv1.DefaultRsaKeySizeBits
}

func renewalRatio(spec *certificatesv1.IssuedCertificateSpec) float64 {
	if spec.CertOptions == nil {
		return 0
	}
	return spec.CertOptions.SecretRotationGracePeriodRatio
}
