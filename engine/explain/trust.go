package explain

import (
	"slices"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	certificatesv1 "github.com/meshctl/meshctl/engine/api/certificates/v1"
	commonv1 "github.com/meshctl/meshctl/engine/api/common/v1"
	networkingv1 "github.com/meshctl/meshctl/engine/api/networking/v1"
	"github.com/meshctl/meshctl/engine/snapshot"
)

// Trust is whom the members of a VirtualMesh trust. Roots are named by the SHA-256
// fingerprint of their certificate, in lower-case hexadecimal digits. What it says of
// stages and roots is in the status of the VirtualMesh, and what workloads hold in the
// reports of the agents; the latter are known only if the clusters were read.
type Trust struct {
	VirtualMesh snapshot.Ref `json:"virtualMesh"`
	// Shared: the VirtualMesh gives its members a common root. If not, all members have
	// their own, and only their RootFingerprints are known.
	Shared bool `json:"shared"`
	// Model says in words who issues the members' certificates.
	Model string `json:"model"`
	// Stage is empty if none is known: the trust is not shared, or no server has written it.
	Stage networkingv1.TrustStage `json:"stage,omitempty"`
	// Message says what the stage waits for.
	Message string `json:"message,omitempty"`
	Paused  bool   `json:"paused,omitempty"`
	// Root is the one that signs, or is to sign; nil if there is none.
	Root *TrustRoot `json:"root,omitempty"`
	// Roots are all that are known, ascending by fingerprint.
	Roots   []TrustRoot   `json:"roots"`
	Members []TrustMember `json:"members"`
	// Issues are what is wrong with the trust, worst first; absent where they are listed
	// with those of the whole object.
	Issues []snapshot.Issue `json:"issues,omitzero"`

	generated bool
	// limited: the certificates are those of gateways.
	limited bool
}

// RootUse is what a root is used for.
type RootUse string

// The uses of a root.
const (
	// RootSigns: it signs, or is to sign, the certificates of all members.
	RootSigns RootUse = "SIGNS"
	// RootInUse: it does not sign, and members have certificates of it.
	RootInUse RootUse = "IN_USE"
	// RootLeaving: members trust it, and no certificate of it is known.
	RootLeaving RootUse = "LEAVING"
)

// TrustRoot is a root certificate.
type TrustRoot struct {
	Fingerprint string  `json:"fingerprint"`
	Use         RootUse `json:"use"`
	// NotAfter is when it expires; zero if that is not known.
	NotAfter time.Time `json:"notAfter,omitzero"`
	// Secret has its key, on the management cluster; nil if that is not known.
	Secret *snapshot.Ref `json:"secret,omitempty"`
}

// TrustMember is the trust of one member.
type TrustMember struct {
	Mesh    snapshot.Ref `json:"mesh"`
	Cluster string       `json:"cluster"`
	// Frozen says why the member's cluster cannot be reached, so that nothing is changed there; empty if it can.
	Frozen string `json:"unreachable,omitempty"`
	// State is that of its IssuedCertificate; empty if its agent has not answered.
	State string `json:"state,omitempty"`
	// Certificate is the one in istiod's Secret; nil if there is none of the VirtualMesh, or
	// its agent has not answered.
	Certificate *TrustCertificate `json:"certificate,omitempty"`
	// Roots are those that its control plane hands out, as discovered.
	Roots []string `json:"rootFingerprints,omitempty"`
	// Report is what its agent found; nil if it was not read.
	Report *TrustReport `json:"report,omitempty"`
	// Message says what it waits for; empty if for nothing.
	Message string `json:"message,omitempty"`

	// asked: its agent was asked for something, as far as is known.
	asked bool
}

// TrustCertificate is the intermediate of a member. All but Root and NotAfter is known only
// from the agent's report.
type TrustCertificate struct {
	Root        string    `json:"root,omitempty"`
	Fingerprint string    `json:"fingerprint,omitempty"`
	Serial      string    `json:"serialNumber,omitempty"`
	NotBefore   time.Time `json:"notBefore,omitzero"`
	NotAfter    time.Time `json:"notAfter,omitzero"`
}

// TrustReport is what an agent found in its mesh.
type TrustReport struct {
	// Trusted are the roots that all workloads trust, and Presented those of certificates
	// that workloads present or may still present.
	Trusted   []string `json:"trusted"`
	Presented []string `json:"presented"`
	// UserSecret: a user made istiod's Secret, and the agent leaves it alone.
	UserSecret bool `json:"userSecret,omitempty"`
	// ControlPlane, Namespaces, Trusting and Presenting count what has got so far; nil if
	// the agent has not counted.
	ControlPlane *certificatesv1.TrustProgress `json:"controlPlane,omitempty"`
	Namespaces   *certificatesv1.TrustProgress `json:"namespaces,omitempty"`
	Trusting     *certificatesv1.TrustProgress `json:"trusting,omitempty"`
	Presenting   *certificatesv1.TrustProgress `json:"presenting,omitempty"`
	// VerifiedAt is when the agent looked last.
	VerifiedAt time.Time `json:"verifiedAt,omitzero"`
}

// Trust describes the trust of a VirtualMesh, with what is wrong at a time; nil if there is
// no such VirtualMesh.
func (x *Index) Trust(ref snapshot.Ref, now time.Time) *Trust {
	v := x.virtualMeshes[ref]
	if v == nil {
		return nil
	}
	out := describing(x).trust(v)
	out.Issues = describing(x).trustIssues(v, out, now)
	return out
}

// trust describes the trust of a VirtualMesh, without Issues.
func (x describer) trust(v *snapshot.VirtualMeshPlan) *Trust {
	mtls := v.VirtualMesh.Spec.MtlsConfig
	issued := mtls.Issued()
	out := &Trust{VirtualMesh: v.Ref, Shared: issued != nil, Model: trustText(mtls), Roots: []TrustRoot{}, Members: []TrustMember{}}
	out.limited = mtls != nil && mtls.Limited != nil
	out.generated = out.Shared && issued.IntermediateCertificateAuthority == nil &&
		(issued.RootCertificateAuthority == nil || issued.RootCertificateAuthority.Secret == nil)
	status := x.trustStatus(v)
	out.Stage, out.Message, out.Paused = status.Stage, told(status.Message), status.Paused
	if out.Shared && v.VirtualMesh.Annotations[snapshot.TrustPauseAnnotation] == "true" {
		out.Paused = true // as asked, whether or not a server knows yet
	}
	for _, m := range v.Members {
		if v.Trust == nil || m.Trust != nil {
			out.Members = append(out.Members, x.trustMember(m, status))
		}
	}
	out.Roots = trustRoots(v, status, out.Members)
	if i := slices.IndexFunc(out.Roots, func(r TrustRoot) bool { return r.Use == RootSigns }); i >= 0 {
		out.Root = &out.Roots[i]
	}
	return out
}

// trustStatus is what the server says, or would say: the zero value if nothing.
func (x describer) trustStatus(v *snapshot.VirtualMeshPlan) *networkingv1.TrustStatus {
	if s := x.statuses[v.Ref]; v.Trust != nil && s != nil {
		if status, ok := s.Value.(*networkingv1.VirtualMeshStatus); ok && status.Trust != nil {
			return status.Trust
		}
	}
	return &networkingv1.TrustStatus{}
}

func (x describer) trustMember(mesh *snapshot.MeshPlan, status *networkingv1.TrustStatus) TrustMember {
	out := TrustMember{Mesh: mesh.Ref, Cluster: mesh.Cluster, Frozen: x.frozenReason(mesh.Cluster), Roots: mesh.Roots}
	for _, m := range status.Members {
		if m.Mesh != (commonv1.ObjectRef{Name: mesh.Ref.Name, Namespace: mesh.Ref.Namespace}) {
			continue
		}
		out.asked = status.Stage != networkingv1.TrustWaiting // without a root, nothing is asked
		out.State, out.Message = told(m.State), told(m.Message)
		if m.Root != "" || m.NotAfter != nil {
			out.Certificate = &TrustCertificate{Root: told(m.Root), NotAfter: timeOf(m.NotAfter)}
		}
	}
	m := mesh.Trust
	if m == nil {
		return out
	}
	if m.State != "" {
		out.State = told(string(m.State))
	}
	r := m.Report
	if r == nil {
		return out
	}
	if out.Message == "" {
		out.Message = told(r.WaitingFor)
	}
	if r.Issuer != nil {
		out.Certificate = &TrustCertificate{
			Root: told(r.Issuer.Root), Fingerprint: told(r.Issuer.Fingerprint), Serial: told(r.Issuer.SerialNumber),
			NotBefore: timeOf(r.Issuer.NotBefore), NotAfter: timeOf(r.Issuer.NotAfter),
		}
	}
	out.Report = &TrustReport{
		Trusted: toldAll(r.Trusted), Presented: toldAll(r.Presented), UserSecret: r.UserSecret, ControlPlane: toldProgress(r.ControlPlane),
		Namespaces: toldProgress(r.Namespaces), Trusting: toldProgress(r.Trusting), Presenting: toldProgress(r.Presenting), VerifiedAt: timeOf(r.VerifiedAt),
	}
	return out
}

// trustRoots are the roots that the status and the members name, ascending.
func trustRoots(v *snapshot.VirtualMeshPlan, status *networkingv1.TrustStatus, members []TrustMember) []TrustRoot {
	if v.Trust == nil {
		return []TrustRoot{}
	}
	found := map[string]*TrustRoot{}
	rank := map[RootUse]int{RootLeaving: 0, RootInUse: 1, RootSigns: 2}
	add := func(use RootUse, fingerprints ...string) {
		for _, fingerprint := range fingerprints {
			root := found[fingerprint]
			if root == nil && !isFingerprint(fingerprint) {
				continue // only the server and the agents know, and an agent may tell anything
			}
			if root == nil {
				root = &TrustRoot{Fingerprint: fingerprint, Use: use}
				found[fingerprint] = root
			}
			if rank[use] > rank[root.Use] {
				root.Use = use
			}
		}
	}
	for _, m := range members {
		if m.Certificate != nil {
			add(RootInUse, m.Certificate.Root)
		}
		if m.Report != nil {
			add(RootLeaving, m.Report.Trusted...)
			add(RootInUse, m.Report.Presented...)
		}
	}
	for _, r := range status.Roots {
		add(RootLeaving, r.Fingerprint)
		if root := found[r.Fingerprint]; root != nil {
			root.NotAfter = timeOf(r.NotAfter)
		}
	}
	add(RootSigns, status.Root)
	out := make([]TrustRoot, 0, len(found))
	for _, root := range found {
		root.Secret = rootSecret(v, root)
		out = append(out, *root)
	}
	slices.SortFunc(out, func(a, b TrustRoot) int { return strings.Compare(a.Fingerprint, b.Fingerprint) })
	return out
}

// isFingerprint reports whether a text is the SHA-256 of a certificate.
func isFingerprint(text string) bool {
	return len(text) == 64 && strings.Trim(text, "0123456789abcdef") == ""
}

// rootSecret is where the key of a root is; nil if that is not known.
func rootSecret(v *snapshot.VirtualMeshPlan, root *TrustRoot) *snapshot.Ref {
	for _, r := range v.Trust.Roots {
		if r.Fingerprint == root.Fingerprint && r.Secret != (snapshot.Ref{}) {
			return &r.Secret
		}
	}
	for _, m := range v.Trust.Members {
		if m.Signs == root.Fingerprint && m.Spec != nil && m.Spec.GlooMeshCa != nil && m.Spec.GlooMeshCa.SigningCertificateSecret != nil {
			s := m.Spec.GlooMeshCa.SigningCertificateSecret
			return &snapshot.Ref{Kind: snapshot.Secret, Namespace: s.Namespace, Name: s.Name}
		}
	}
	if ca := v.VirtualMesh.Spec.MtlsConfig.Issued().RootCertificateAuthority; root.Use == RootSigns && ca != nil && ca.Secret != nil &&
		v.VirtualMesh.Annotations[snapshot.TrustRootAnnotation] == "" {
		return &snapshot.Ref{Kind: snapshot.Secret, Namespace: ca.Secret.Namespace, Name: ca.Secret.Name}
	}
	return nil
}

// maxTold bounds a text that a cluster tells.
const maxTold = 500

// told is a text from a cluster, of bounded length.
func told(text string) string {
	if runes := []rune(text); len(runes) > maxTold {
		return string(runes[:maxTold]) + "…"
	}
	return text
}

func toldAll(texts []string) []string {
	out := make([]string, len(texts))
	for i, text := range texts {
		out[i] = told(text)
	}
	return out
}

func toldProgress(p *certificatesv1.TrustProgress) *certificatesv1.TrustProgress {
	if p == nil {
		return nil
	}
	out := *p
	if len(p.Waiting) > 0 {
		out.Waiting = toldAll(p.Waiting)
	}
	return &out
}

func timeOf(t *metav1.Time) time.Time {
	if t == nil {
		return time.Time{}
	}
	return t.UTC()
}
