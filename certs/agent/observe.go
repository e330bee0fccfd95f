package agent

import (
	"context"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/meshctl/meshctl/certs/pki"
	certificatesv1 "github.com/meshctl/meshctl/engine/api/certificates/v1"
	"github.com/meshctl/meshctl/engine/snapshot"
)

// observe reads all that a decision about a mesh needs. It returns nil if the mesh is none of the agent's business.
func (a *agent) observe(ctx context.Context, m *mesh, certificate *certificatesv1.IssuedCertificate) (*facts, error) {
	o := observed{
		namespace: a.options.Namespace, name: m.name, certificate: certificate,
		now: a.options.Now(), skew: a.clock.skew(), leaveAfter: a.options.leaveAfter, settleAfter: a.options.settleAfter,
	}
	var err error
	if o.request, err = get(ctx, a.store, snapshot.CertificateRequest, o.namespace, o.name, &certificatesv1.CertificateRequest{}); err != nil {
		return nil, err
	}
	at := where(certificate, recordOf(o.request), m.at)
	switch {
	case certificate != nil:
		m.goneSince = time.Time{}
	case m.goneSince.IsZero():
		m.goneSince = o.now
	default:
		o.gone = o.now.Sub(m.goneSince)
	}
	if certificate == nil && leavesNow(o.request, o.now) {
		o.gone = max(o.gone, o.leaveAfter)
	}
	if at == nil {
		if certificate == nil {
			*m = mesh{} // a request of somebody else's
		}
		return nil, nil
	}
	if !at.forGateways() {
		if o.directive, err = get(ctx, a.store, snapshot.PodBounceDirective, o.namespace, o.name, &certificatesv1.PodBounceDirective{}); err != nil {
			return nil, err
		}
		at.Restart = m.mayRestart(&o, at.Restart, recordOf(o.request))
	}
	if m.at = at; a.watched != nil {
		a.watched.followMesh(o.namespace, o.name, *at)
	}
	if err := a.readSecrets(ctx, &o, at); err != nil {
		return nil, err
	}
	f := newFacts(o, *at)
	if at.forGateways() { // what they have loaded cannot be seen
		return f, nil
	}
	state, err := a.options.Verifier.Look(ctx, f.target().since(m.last))
	if err != nil {
		f.meshErr = err
		return f, nil //nolint:nilerr // the decision says what follows from it
	}
	f.mesh, m.last = &state, &state
	return f, nil
}

// leavesNow reports whether an administrator asked that a mesh whose IssuedCertificate is gone leaves at once. Whoever deregisters a
// cluster has it deleted on purpose, and need not wait whether it is back.
func leavesNow(request *certificatesv1.CertificateRequest, now time.Time) bool {
	if request == nil {
		return false
	}
	asked, err := time.Parse(time.RFC3339, request.Annotations[snapshot.LeaveNowAnnotation])
	return err == nil && now.Sub(asked).Abs() < snapshot.LeaveNowLasts
}

// readSecrets reads those of a mesh.
func (a *agent) readSecrets(ctx context.Context, o *observed, at *record) (err error) {
	if o.key, err = a.store.secret(ctx, o.namespace, o.name); err != nil {
		return err
	}
	if o.cacerts, err = a.store.secret(ctx, at.Namespace, at.Name); err != nil || at.forGateways() {
		return err
	}
	if o.backup, err = a.store.secret(ctx, at.Namespace, BackupName); err != nil {
		return err
	}
	o.selfSigned, err = a.store.secret(ctx, at.Namespace, SelfSignedName)
	return err
}

// mayRestart is which pods may be restarted. The directive of a mesh that leaves goes together with its IssuedCertificate, but
// not at once: so one that is missing counts only after a while.
func (m *mesh) mayRestart(o *observed, remembered []certificatesv1.PodSelector, recorded *record) []certificatesv1.PodSelector {
	switch {
	case o.directive != nil:
		m.undirectedSince = time.Time{}
		if len(o.directive.Spec.PodsToBounce) > maxRestart {
			return nil
		}
		return o.directive.Spec.PodsToBounce
	case o.certificate == nil:
		return remembered
	case m.undirectedSince.IsZero():
		m.undirectedSince = o.now
	}
	if recorded == nil || o.now.Sub(m.undirectedSince) >= o.leaveAfter {
		return nil
	}
	return recorded.Restart
}

// where is the Secret of a mesh; nil if it has none, or another agent makes it.
func where(certificate *certificatesv1.IssuedCertificate, recorded, remembered *record) *record {
	if certificate == nil {
		if recorded != nil {
			return &record{
				Usage: recorded.Usage, Namespace: recorded.Namespace, Name: recorded.Name, ControlPlane: recorded.ControlPlane, Restart: recorded.Restart,
			}
		}
		return remembered
	}
	secret := certificate.Spec.IssuedCertificateSecret
	ca := certificate.Spec.AgentCa
	if secret == nil || secret.Name == "" || secret.Namespace == "" || ca != nil && ca.Vault == nil {
		return nil
	}
	at := &record{Namespace: secret.Namespace, Name: secret.Name}
	if certificate.Spec.Trust != nil {
		at.Usage, at.ControlPlane = certificate.Spec.Trust.Usage, certificate.Spec.Trust.ControlPlane
	}
	return at
}

// target is the mesh as the Verifier is to look at it.
func (f *facts) target() MeshTarget {
	target := MeshTarget{Name: f.name, Namespace: f.at.Namespace, Labels: f.at.ControlPlane, Skew: f.skew, NamespaceTimeout: snapshot.NamespaceTimeout}
	if f.cacerts != nil {
		target.UID, target.Data, target.Written = f.cacerts.UID, f.cacerts.Data, writtenAt(f.cacerts, f.skew, "")
	}
	if f.have != nil {
		target.Issuer, target.Roots = f.have.Authority.Chain(), f.have.Roots
	}
	if f.certificate == nil {
		if former := f.former(); former != nil {
			target.Root, target.Requested = pki.Fingerprint(rootOf(former.Authority)), former.Roots
		}
		return target
	}
	if trust := f.certificate.Spec.Trust; trust != nil {
		target.Root, target.LeaveOut = trust.Root, trust.LeaveOut
		if trust.NamespaceTimeout != nil {
			target.NamespaceTimeout = trust.NamespaceTimeout.Duration
		}
		// A bundle that cannot be read is reported by the decision.
		target.Requested, _ = pki.ReadBundle([]byte(trust.Bundle))
	}
	target.Earlier = f.certificate.Status.Trust
	return target
}

// writtenAt is when a Secret was written last, by a clock that is ahead of the API server's: by this manager, or by anybody if it
// is empty.
func writtenAt(secret *corev1.Secret, skew time.Duration, manager string) time.Time {
	var last time.Time
	for _, entry := range secret.ManagedFields {
		if entry.Time != nil && entry.Time.After(last) && (manager == "" || entry.Manager == manager) {
			last = entry.Time.Time
		}
	}
	if last.IsZero() {
		return last
	}
	return last.Add(skew)
}

// since adds what is remembered, if no report has it. Without what workloads presented and trusted last, it would seem that
// all of them changed with the control plane.
func (t MeshTarget) since(last *MeshState) MeshTarget {
	if last != nil && t.Earlier == nil {
		t.Earlier = &certificatesv1.TrustReport{Signing: last.Signing, HandedOut: last.HandedOut, Presented: last.Presented, Trusted: last.Trusted, Behind: last.Behind}
	}
	return t
}
