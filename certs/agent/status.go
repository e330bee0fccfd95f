package agent

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/meshctl/meshctl/certs/pki"
	certificatesv1 "github.com/meshctl/meshctl/engine/api/certificates/v1"
)

const (
	// skewShown is the least skew that is reported: clocks are compared by a header that counts in seconds, over a network.
	skewShown = 5 * time.Second
	// verifiedEvery is how often a report is written although nothing changed.
	verifiedEvery = 5 * time.Minute
	// maxItems of the lists of roots in a report; the API has the same bound.
	maxItems = 64
)

// baseStatus is about this generation, with what was seen of the mesh; if it cannot be seen now, with what was seen last.
func (f *facts) baseStatus() *certificatesv1.IssuedCertificateStatus {
	report := &certificatesv1.TrustReport{}
	if last := f.certificate.Status.Trust; last != nil {
		report = last.DeepCopy()
	}
	report.UserSecret, report.WaitingFor, report.Issuer = f.holder == users, "", nil
	if f.chain != nil {
		report.Issuer = info(f.chain)
	}
	if f.at.forGateways() {
		trusted, presented := f.held()
		report.Trusted, report.Presented = bounded(trusted), bounded(presented)
	}
	report.ClockSkewSeconds = 0
	if f.skew.Abs() > skewShown {
		report.ClockSkewSeconds = int64(f.skew / time.Second)
	}
	if m := f.mesh; m != nil {
		report.ControlPlane, report.Namespaces = m.ControlPlane.DeepCopy(), m.Namespaces.DeepCopy()
		report.Trusting, report.Presenting = m.Trusting.DeepCopy(), m.Presenting.DeepCopy()
		for _, progress := range []*certificatesv1.TrustProgress{report.ControlPlane, report.Namespaces, report.Trusting, report.Presenting} {
			progress.Waiting = progress.Waiting[:min(len(progress.Waiting), 10)]
		}
		report.Trusted, report.Presented = bounded(m.Trusted), bounded(m.Presented)
		report.Signing, report.Behind = m.Signing.DeepCopy(), slices.Clone(m.Behind)
		report.HandedOut = slices.Clone(m.HandedOut[:min(len(m.HandedOut), maxItems)])
		report.VerifiedAt = &metav1.Time{Time: f.now.Truncate(time.Second)}
	}
	return &certificatesv1.IssuedCertificateStatus{ObservedGeneration: f.certificate.Generation, Trust: report}
}

func bounded(roots []string) []string {
	roots = sorted(roots)
	return roots[:min(len(roots), maxItems)]
}

func info(chain pki.Chain) *certificatesv1.CertificateInfo {
	cert := chain[0]
	return &certificatesv1.CertificateInfo{
		Fingerprint: pki.Fingerprint(cert), Root: pki.Fingerprint(chain.Root()), SerialNumber: fmt.Sprintf("%x", cert.SerialNumber),
		NotBefore: &metav1.Time{Time: cert.NotBefore}, NotAfter: &metav1.Time{Time: cert.NotAfter},
	}
}

// status says where a certificate stands that the agent cares for. answer is why there is no new certificate, err why the
// Secret is not what it is to be; e is nil for gateways.
func (r *request) status(e *exchange, answer, err error) *certificatesv1.IssuedCertificateStatus {
	status := r.baseStatus()
	switch {
	case !isWaiting(err):
		return r.withError(status, err)
	case !isWaiting(answer) && pki.ReasonOf(answer) != pki.NotYetValid:
		return r.withError(status, answer)
	case r.inUse() && r.complete():
		status.State = certificatesv1.IssuedCertificateFinished
	case r.inUse():
		status.State = certificatesv1.IssuedCertificateIssued
	case r.request != nil:
		status.State = certificatesv1.IssuedCertificateRequested
	default:
		status.State = certificatesv1.IssuedCertificatePending
	}
	status.Trust.WaitingFor = r.waitingFor(e, answer, status.State)
	return status
}

// withError says that what is asked for could not be done. A root that the Secret does not have is then not said to be trusted, although
// it may still be handed out: the mesh loses it with the next take-up, and whoever asked for it counts on what is said of this generation.
func (f *facts) withError(status *certificatesv1.IssuedCertificateStatus, err error) *certificatesv1.IssuedCertificateStatus {
	if f.have != nil && status.Trust != nil {
		has := f.have.Roots.Fingerprints()
		status.Trust.Trusted = slices.DeleteFunc(slices.Clone(status.Trust.Trusted), func(root string) bool { return !slices.Contains(has, root) })
	}
	status.State, status.Error = certificatesv1.IssuedCertificateFailed, err.Error()
	return status
}

// userStatus is that of a mesh whose certificates a user manages, below the root of the VirtualMesh. The agent has nothing to
// do there but to say what it sees.
func (f *facts) userStatus() *certificatesv1.IssuedCertificateStatus {
	status := f.baseStatus()
	status.State = certificatesv1.IssuedCertificateFinished
	if bundle, err := pki.ReadBundle([]byte(f.certificate.Spec.Trust.Bundle)); err == nil && !f.have.Roots.Covers(bundle) {
		missing := bundle.Without(f.have.Roots.Certificates()...)
		status.Trust.WaitingFor = fmt.Sprintf("Secret %s/%s was made by a user: add the roots %s of the VirtualMesh to its %s", f.at.Namespace, f.at.Name,
			list(missing.Fingerprints()), pki.RootCertKey)
		return status
	}
	status.Trust.WaitingFor = f.nextStep()
	return status
}

// complete: everybody trusts all roots that are asked for, and presents a certificate of the one that signs.
func (r *request) complete() bool {
	if r.at.forGateways() {
		return r.loadedByAll()
	}
	m := r.mesh
	if m == nil {
		// What was seen to be complete stays so until something else is seen.
		return r.certificate.Status.State == certificatesv1.IssuedCertificateFinished && r.certificate.Status.ObservedGeneration == r.certificate.Generation
	}
	for _, progress := range []certificatesv1.TrustProgress{m.ControlPlane, m.Namespaces, m.Trusting, m.Presenting} {
		if progress.Done < progress.Total {
			return false
		}
	}
	for _, root := range r.bundle.Fingerprints() {
		if !slices.Contains(m.Trusted, root) && !m.empty() {
			return false
		}
	}
	return !m.NeedsControlPlane && !m.NeedsWorkloads
}

// waitingFor says what has to happen next, and who has to act.
func (r *request) waitingFor(e *exchange, answer error, state certificatesv1.IssuedCertificateState) string {
	switch {
	case pki.ReasonOf(answer) == pki.NotYetValid:
		return answer.Error()
	case state == certificatesv1.IssuedCertificateFinished:
		return ""
	case errors.Is(answer, errUnsigned) && !r.inUse() && (r.at.forGateways() || r.mesh == nil || e.trusted(r.root) || r.mesh.empty()):
		return r.signerName() + " has to sign CertificateRequest " + r.owner()
	case r.at.forGateways():
		return fmt.Sprintf("gateways load Secret %s/%s; that counts as done %s after it has changed", r.at.Namespace, r.at.Name, r.settleAfter)
	case r.mesh == nil:
		return fmt.Sprintf("what the mesh holds cannot be seen: %v", r.meshErr)
	}
	return r.nextStep()
}

// nextStep says what helps the mesh to take up what cacerts has.
func (f *facts) nextStep() string {
	m := f.mesh
	if m == nil {
		return ""
	}
	restart := "run `meshctl mesh restart " + f.name + "`"
	switch {
	case m.NeedsControlPlane:
		return fmt.Sprintf("the control plane in namespace %s must restart to take up Secret %s: %s", f.at.Namespace, f.at.Name, restart)
	case m.ControlPlane.Done < m.ControlPlane.Total:
		text := fmt.Sprintf("the control plane in namespace %s takes up Secret %s (%s); Kubernetes passes it on within two minutes", f.at.Namespace, f.at.Name, count(m.ControlPlane))
		if f.mayNotRefresh {
			text += ", and at once if the agent may patch its pods: register the cluster again, which gives the agent the rights of this version"
		}
		return text
	case m.Namespaces.Done < m.Namespaces.Total:
		return fmt.Sprintf("istiod writes the roots to ConfigMap istio-ca-root-cert of all namespaces (%s)", count(m.Namespaces)) + f.heldUp()
	case m.NeedsWorkloads:
		return fmt.Sprintf("workloads must restart, or renew their certificates within a day (trusting: %s, presenting: %s): %s", count(m.Trusting), count(m.Presenting), restart) + f.heldUp()
	case m.Trusting.Done < m.Trusting.Total:
		return "workloads take up the roots (" + count(m.Trusting) + ")" + f.heldUp()
	case m.Presenting.Done < m.Presenting.Total:
		return "workloads take up certificates of the new root (" + count(m.Presenting) + ")" + f.heldUp()
	}
	return ""
}

// heldUp says which namespace holds the mesh up longest, and until when; empty if none does.
func (f *facts) heldUp() string {
	if f.mesh == nil {
		return ""
	}
	waited := slices.DeleteFunc(slices.Clone(f.mesh.Behind), func(b certificatesv1.NamespaceBehind) bool { return b.LeftOut })
	if len(waited) == 0 || waited[0].Since == nil {
		return ""
	}
	first, until := waited[0], "and is always waited for, as that of the control plane"
	if first.Namespace != f.at.Namespace {
		until = "and is left out from " + first.Since.Add(f.target().NamespaceTimeout).UTC().Format(time.RFC3339) + " on"
	}
	others := ""
	if n := len(waited) - 1; n > 0 {
		others = fmt.Sprintf(" (so do %d others, for less time)", n)
	}
	return fmt.Sprintf("; namespace %s holds it up since %s%s, %s", first.Namespace, first.Since.UTC().Format(time.RFC3339), others, until)
}

func count(p certificatesv1.TrustProgress) string {
	text := fmt.Sprintf("%d of %d", p.Done, p.Total)
	if len(p.Waiting) > 0 {
		text += ", not " + p.Waiting[0]
	}
	return text
}

// differs reports whether a status has to be written. That the same was seen again is written now and then; a skew that
// changes by a few seconds is the same.
func differs(have, want *certificatesv1.IssuedCertificateStatus) bool {
	have, want = have.DeepCopy(), want.DeepCopy()
	if have.Trust != nil && want.Trust != nil {
		last, seen := have.Trust.VerifiedAt, want.Trust.VerifiedAt
		if seen != nil && (last == nil || seen.Sub(last.Time).Abs() >= verifiedEvery) {
			return true
		}
		have.Trust.VerifiedAt, want.Trust.VerifiedAt = nil, nil
		if change := have.Trust.ClockSkewSeconds - want.Trust.ClockSkewSeconds; cmp.Compare(change*change, 25) <= 0 {
			have.Trust.ClockSkewSeconds = want.Trust.ClockSkewSeconds
		}
	}
	return !equality.Semantic.DeepEqual(have, want)
}
