package snapshot

import (
	"fmt"
	"regexp"
	"slices"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/util/validation"

	certificatesv1 "github.com/meshctl/meshctl/engine/api/certificates/v1"
	networkingv1 "github.com/meshctl/meshctl/engine/api/networking/v1"
)

// Annotations of a VirtualMesh by which an operator steers a rotation of its root. Only who
// may edit the VirtualMesh can set them.
const (
	// TrustPauseAnnotation with the value "true" holds the trust where it stands.
	TrustPauseAnnotation = "trust.multicluster.solo.io/pause"
	// TrustRotateAnnotation asks for a new generated root: one that is not older than the
	// annotation's value, a time as in RFC 3339.
	TrustRotateAnnotation = "trust.multicluster.solo.io/rotate"
	// TrustRootAnnotation names the root that is to sign, by fingerprint: a rotation is
	// rolled back to it. It must be one that the VirtualMesh still has.
	TrustRootAnnotation = "trust.multicluster.solo.io/root"
	// TrustAcceptAnnotation accepts claims, separated by spaces: a trust domain of a member and its
	// aliases as MESH=DOMAIN,DOMAIN, and a root that the management plane has not made by its
	// fingerprint. See AcceptedClaims.
	TrustAcceptAnnotation = "trust.multicluster.solo.io/accept"
	// TrustLeaveOutAnnotation names namespaces of members, separated by spaces, for which no exchange of
	// the root waits: NAMESPACE in all clusters, or CLUSTER/NAMESPACE. See LeftOut.
	TrustLeaveOutAnnotation = "trust.multicluster.solo.io/leave-out"
)

// NamespaceTimeout is how long an exchange of a root waits for a namespace, unless Settings say otherwise.
const NamespaceTimeout = 48 * time.Hour

// LeftOut reads the value of TrustLeaveOutAnnotation: the namespaces that it names in a cluster, ascending.
// Problem is what is wrong with it; what can be read counts.
func LeftOut(value, cluster string) (namespaces []string, problem string) {
	for _, name := range strings.Fields(value) {
		of, namespace, isOne := strings.Cut(name, "/")
		if !isOne {
			of, namespace = cluster, name
		}
		switch {
		case of == "" || len(validation.IsDNS1123Label(namespace)) > 0:
			problem = fmt.Sprintf("annotation %s: %.80q is neither NAMESPACE nor CLUSTER/NAMESPACE", TrustLeaveOutAnnotation, name)
		case of == cluster:
			namespaces = append(namespaces, namespace)
		}
	}
	slices.Sort(namespaces)
	return slices.Compact(namespaces), problem
}

// AcceptedClaims reads the value of TrustAcceptAnnotation. Problem is what is wrong with it; what can be
// read counts.
func AcceptedClaims(value string) (roots []string, pins []TrustPin, problem string) {
	for _, claim := range strings.Fields(value) {
		mesh, domains, isPin := strings.Cut(claim, "=")
		root := strings.ToLower(strings.ReplaceAll(claim, ":", ""))
		switch {
		case isPin && mesh != "" && !slices.Contains(strings.Split(domains, ","), ""):
			pins = append(pins, TrustPin{Mesh: mesh, Domains: strings.Split(domains, ",")})
		case fingerprintPattern.MatchString(root):
			roots = append(roots, root)
		default:
			problem = fmt.Sprintf("%.80q is neither MESH=TRUSTDOMAIN nor the fingerprint of a root", claim)
		}
	}
	return roots, pins, problem
}

var fingerprintPattern = regexp.MustCompile(`^[0-9a-f]{64}$`)

// AgentLease is the Lease that the agent of a managed cluster holds, in its namespace.
const AgentLease = "meshctl-agent"

// VaultAudience is that of the tokens with which agents log in to a HashiCorp Vault, unless an administrator names another.
const VaultAudience = "vault"

// TrustRecord is the ConfigMap, in the management plane's namespace, that says what may be trusted.
const TrustRecord = "meshctl-trust"

// Types of Secrets (behaviour.md, section 6.1).
const (
	// RootSecretType is that of roots made for VirtualMeshes, and of the certificates of users' roots.
	RootSecretType = "certificates.mesh.gloo.solo.io/generated_signing_cert"
	// KeySecretType is that of the private keys of meshes, which agents make.
	KeySecretType = "certificates.mesh.gloo.solo.io/generated_private_key"
)

// RootPending is the Problem of a VirtualMesh whose root is being made.
const RootPending = "its root certificate is being made; wait a moment"

// GatewaySecret is the Secret, in a mesh's namespace, from which its east-west gateways load
// the certificate that they present to those of other meshes, and the roots that they trust.
const GatewaySecret = "meshctl-gateways"

// GatewayCertificateName is the name of the IssuedCertificate for the gateways of a mesh, and of
// what its agent makes for it, by the name of the Mesh object.
func GatewayCertificateName(mesh string) string { return mesh + "-gateways" }

// Root is a root certificate, without its key.
type Root struct {
	// Fingerprint is the SHA-256 of the certificate in lower-case hexadecimal digits.
	Fingerprint string
	// PEM is the certificate.
	PEM string
	// NotAfter is when it expires.
	NotAfter time.Time
	// Gateways: it was made for gateways, and for nothing else.
	Gateways bool
	// Secret has its key, on the management cluster; zero if there is none any more, or if
	// a Vault has it.
	Secret Ref
}

// VirtualMeshRoots are the roots of one VirtualMesh, as its store has them.
type VirtualMeshRoots struct {
	VirtualMesh Ref
	// Roots are ascending by fingerprint. One leaves when no member needs it any more
	// (TrustPlan.Unused).
	Roots []*Root
	// Signs is the fingerprint of the root that is to sign; empty if there is none, and
	// Problem says why, as a sentence with the next step.
	Signs, Problem string
	// Pins are the recorded trust domains of its members, ascending by Mesh.
	Pins []TrustPin
}

// TrustPin are the trust domains for which a member of a VirtualMesh may have a CA.
type TrustPin struct {
	// Mesh is the name of the Mesh object.
	Mesh string `json:"mesh"`
	// Domains begin with the one that its control plane had.
	Domains []string `json:"domains"`
}

// Compare orders pins by mesh.
func (p TrustPin) Compare(o TrustPin) int { return strings.Compare(p.Mesh, o.Mesh) }

// Has reports whether a trust domain is pinned.
func (p TrustPin) Has(domain string) bool { return slices.Contains(p.Domains, domain) }

// PinOf finds the pin of a mesh; nil if there is none. One without trust domains, which somebody may
// have written by hand, is none.
func PinOf(pins []TrustPin, mesh string) *TrustPin {
	if i := slices.IndexFunc(pins, func(p TrustPin) bool { return p.Mesh == mesh && len(p.Domains) > 0 }); i >= 0 {
		return &pins[i]
	}
	return nil
}

// Find returns the root with a fingerprint; nil if there is none.
func (r *VirtualMeshRoots) Find(fingerprint string) *Root {
	if r == nil {
		return nil
	}
	if i := slices.IndexFunc(r.Roots, func(root *Root) bool { return root.Fingerprint == fingerprint }); i >= 0 {
		return r.Roots[i]
	}
	return nil
}

// TrustPlan is the common trust of a VirtualMesh: what every member is to trust, with which
// root each signs, and where that stands.
type TrustPlan struct {
	// Usage is what the members' certificates are for.
	Usage certificatesv1.TrustUsage
	Stage networkingv1.TrustStage
	// Message says what the stage waits for.
	Message string
	Paused  bool
	// RootsRead: the Input has the roots of the VirtualMesh. If not, nothing is known but
	// what is Stored in its status; nil if nothing is.
	RootsRead bool
	Stored    *networkingv1.TrustStatus
	// Root is the one that is to sign; nil if there is none.
	Root *Root
	// Problem is what is wrong with it or with another root, as its store says; empty if
	// nothing is.
	Problem string
	// Roots are those that all members are asked to trust, ascending by fingerprint.
	Roots []*Root
	// Unused are the fingerprints of roots that no member presents and none is asked to
	// trust, ascending.
	Unused []string
	// Members are ascending by Ref of the mesh.
	Members []*MemberTrust
	// Established are the members that have had the common trust at least once, ascending.
	Established []Ref
	// Pins are the trust domains of members that are recorded, or are to be, ascending by Mesh.
	Pins []TrustPin
}

// CertificateGrant is what a member may have signed. It follows from objects of the management cluster, and
// from nothing that can be written on the cluster of the member.
type CertificateGrant struct {
	// Usage is what the certificate is for.
	Usage certificatesv1.TrustUsage
	// Root is the fingerprint of the root that signs.
	Root string
	// Hosts are the identities in the certificate. TrustDomains are those for which it may
	// sign if it is a CA; empty if that is not limited.
	Hosts, TrustDomains []string
	// Organization is that of the subject, and Days the life of the certificate.
	Organization string
	Days         uint32
}

// MemberTrust is the trust of one member.
type MemberTrust struct {
	Mesh Ref
	// Ref is that of its IssuedCertificate, and Spec what is asked of its agent; nil if
	// nothing is. It may be what the IssuedCertificate says already, whoever wrote that.
	Ref  Ref
	Spec *certificatesv1.IssuedCertificateSpec
	// Grant is what the issuer signs for it; nil if nothing is signed, because Spec is only
	// kept, or because its agent has a Vault sign.
	Grant *CertificateGrant
	// Restart is what its agent may restart; nil for nothing.
	Restart *certificatesv1.PodBounceDirectiveSpec
	// Signs is the fingerprint of the root that signs the member's intermediate; empty if
	// nothing is asked.
	Signs string
	// State, Error and Report are those of its agent; Report is nil if there is none. A
	// Current report is about what was asked last, in a cluster that can be read.
	State   certificatesv1.IssuedCertificateState
	Error   string
	Report  *certificatesv1.TrustReport
	Current bool
	// Established: it presents certificates of the root that signs, and trusts all Roots.
	Established bool
	// Message says what it waits for; empty if for nothing.
	Message string
}
