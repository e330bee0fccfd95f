package agent

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"k8s.io/utils/ptr"

	"github.com/meshctl/meshctl/certs/pki"
	certificatesv1 "github.com/meshctl/meshctl/engine/api/certificates/v1"
)

// established is a world whose mesh has joined below a root.
func (w *world) assertEstablished(root *pki.Authority, bundle ...*pki.Authority) {
	w.t.Helper()
	status := w.certificate.Status
	assert.Equal(w.t, certificatesv1.IssuedCertificateFinished, status.State, "%s %+v", status.Error, status.Trust)
	assert.Empty(w.t, status.Error)
	assert.Empty(w.t, status.Trust.WaitingFor)
	assert.Equal(w.t, w.certificate.Generation, status.ObservedGeneration)
	assert.Equal(w.t, rootPrint(root), status.Trust.Issuer.Root)
	read, err := pki.ReadCACerts(w.cacerts.Data)
	require.NoError(w.t, err)
	assert.Equal(w.t, rootPrint(root), rootPrint(read.Authority))
	assert.Equal(w.t, bundleOf(bundle...).Fingerprints(), read.Roots.Fingerprints())
	assert.Equal(w.t, bundleOf(bundle...).Fingerprints(), status.Trust.Trusted)
	for _, p := range w.workloads {
		assert.Equal(w.t, rootPrint(root), p.root)
	}
}

// TestJoinRotateLeave goes through the life of a mesh, with everything that may happen in between happening in any order.
func TestJoinRotateLeave(t *testing.T) {
	t.Parallel()
	for seed := range uint64(8) {
		w := newWorld(t, seed)
		w.multi = seed%2 == 0
		w.selfSign()
		w.start(int(seed % 4))
		a, b := w.root("a"), w.root("b")
		w.ask(a, a)
		w.churn(60)
		w.settle()
		w.assertEstablished(a, a)

		w.ask(a, a, b) // the engine: bundle first,
		w.churn(30)
		w.settle()
		w.assertEstablished(a, a, b)
		w.ask(b, a, b) // then the new root signs,
		w.churn(60)
		w.settle()
		w.assertEstablished(b, a, b)
		w.ask(b, b) // then the old one goes
		w.churn(30)
		w.settle()
		w.assertEstablished(b, b)

		w.certificate = nil
		w.churn(80)
		w.settle()
		require.True(t, w.done, w.note)
		assert.Nil(t, w.cacerts, "there was none before")
		assert.Nil(t, w.key)
		assert.Nil(t, w.request)
	}
}

// TestComesBack: a mesh that leaves and comes back at any moment goes on from where it is.
func TestComesBack(t *testing.T) {
	t.Parallel()
	for seed := range uint64(12) {
		w := newWorld(t, seed)
		w.multi = seed%2 == 0
		self := w.selfSign()
		w.start(2)
		a := w.root("a")
		w.ask(a, a)
		w.churn(int(seed) * 10)
		gone := w.certificate
		w.certificate = nil
		w.churn(int(seed) * 5)
		if w.certificate = gone; w.request == nil && w.done {
			w.at = nil
		}
		w.churn(20)
		w.settle()
		w.assertEstablished(a, a)
		w.certificate = nil
		w.settle()
		require.True(t, w.done, w.note)
		for _, p := range w.workloads {
			assert.Equal(t, rootPrint(self), p.root)
		}
	}
}

// TestUserSecret: a user's Secret is left alone, or replaced and put back byte for byte.
func TestUserSecret(t *testing.T) {
	t.Parallel()
	for seed := range uint64(4) {
		w := newWorld(t, seed)
		user, a := w.root("user"), w.root("a")
		original := w.userCACerts(user)
		w.start(2)
		w.ask(a, a)
		w.churn(40)
		w.settle()
		assert.Equal(t, original, w.cacerts, "without permission")
		assert.Empty(t, w.writes)
		assert.Equal(t, certificatesv1.IssuedCertificateFailed, w.certificate.Status.State)
		assert.Contains(t, w.certificate.Status.Error, "replaceUserCertificates")
		assert.True(t, w.certificate.Status.Trust.UserSecret)

		w.certificate.Spec.Trust.ReplaceUserSecret = true
		w.certificate.Generation++
		w.churn(60)
		w.settle()
		w.assertEstablished(a, a)
		assert.Equal(t, original.Data, w.backup.Data)
		assert.False(t, w.certificate.Status.Trust.UserSecret)

		w.certificate = nil
		w.churn(60)
		w.settle()
		require.True(t, w.done, w.note)
		original.ResourceVersion, w.cacerts.ResourceVersion = "", ""
		original.TypeMeta = w.cacerts.TypeMeta
		assert.Equal(t, original, w.cacerts, "byte for byte")
		assert.Nil(t, w.backup)
		assert.Nil(t, w.key)
		assert.Nil(t, w.request)
	}
}

// TestUserManages: a user's Secret below the root of the VirtualMesh is reported, and never written.
func TestUserManages(t *testing.T) {
	t.Parallel()
	w := newWorld(t, 1)
	a, b := w.root("a"), w.root("b")
	original := w.userCACerts(a)
	w.start(2)
	w.ask(a, a)
	w.settle()
	assert.Equal(t, certificatesv1.IssuedCertificateFinished, w.certificate.Status.State)
	assert.Equal(t, rootPrint(a), w.certificate.Status.Trust.Issuer.Root)
	assert.Empty(t, w.certificate.Status.Trust.WaitingFor)
	w.ask(a, a, b)
	w.settle()
	assert.Contains(t, w.certificate.Status.Trust.WaitingFor, "add the roots "+rootPrint(b)[:16])
	assert.Equal(t, original, w.cacerts)
	assert.Empty(t, w.writes)
}

// TestBackupStays: a copy that is there is never replaced.
func TestBackupStays(t *testing.T) {
	t.Parallel()
	w := newWorld(t, 1)
	w.userCACerts(w.root("earlier"))
	w.backup, w.cacerts = w.cacerts, nil
	w.backup.Name = BackupName
	before := w.backup.DeepCopy()
	w.userCACerts(w.root("user"))
	original := w.cacerts.DeepCopy()
	w.start(1)
	a := w.root("a")
	w.ask(a, a)
	w.certificate.Spec.Trust.ReplaceUserSecret = true
	w.settle()
	assert.Equal(t, before, w.backup)
	assert.Equal(t, original, w.cacerts)
	assert.Contains(t, w.certificate.Status.Error, "is not the copy of cacerts")
}

// TestRotationOrder: bundle, then signer, then bundle; each is one write of cacerts.
func TestRotationOrder(t *testing.T) {
	t.Parallel()
	w := newWorld(t, 1)
	w.selfSign()
	w.start(2)
	a, b := w.root("a"), w.root("b")
	w.ask(a, a)
	w.settle()
	w.writes = nil
	for _, bundle := range [][]*pki.Authority{{a, b}, {a, b}, {b}} {
		if len(bundle) == 1 || len(w.writes) > 0 {
			w.ask(b, bundle...)
		} else {
			w.ask(a, bundle...)
		}
		w.settle()
	}
	assert.Equal(t, []string{
		"write Secret istio-system/cacerts: other roots are trusted from now on",
		"write Secret gloo-mesh/" + testName + ": a new private key",
		"write CertificateRequest gloo-mesh/" + testName + ": a request for a certificate",
		"write Secret istio-system/cacerts: another certificate signs from now on",
		"write Secret istio-system/cacerts: other roots are trusted from now on",
	}, cacertsAndKeys(w.writes))
}

// cacertsAndKeys leaves out that the options of a certificate are noted.
func cacertsAndKeys(writes []string) []string {
	var out []string
	for _, write := range writes {
		if !strings.Contains(write, "it is marked as ours") {
			out = append(out, write)
		}
	}
	return out
}

// TestRenewal: with a tenth of its life left, a certificate is replaced by one of the same root with a new key, also if the
// mesh cannot be seen.
func TestRenewal(t *testing.T) {
	t.Parallel()
	for i, blind := range []bool{false, true, false, true} {
		w := newWorld(t, uint64(i)) // the last two with a Vault
		w.selfSign()
		w.start(2)
		a := w.root("a")
		w.ask(a, a)
		w.settle()
		first := w.certificate.Status.Trust.Issuer.DeepCopy()
		key := w.key.DeepCopy()
		w.now = first.NotAfter.Add(-37 * 24 * time.Hour)
		w.settle()
		assert.Equal(t, first.Fingerprint, w.certificate.Status.Trust.Issuer.Fingerprint, "not due yet")
		w.now = first.NotAfter.Add(-36 * 24 * time.Hour)
		for range 3 { // without settle, which can see
			w.blind = blind
			for w.step() {
				w.safe("a write")
			}
			w.issue()
		}
		w.settle()
		w.assertEstablished(a, a)
		assert.NotEqual(t, first.Fingerprint, w.certificate.Status.Trust.Issuer.Fingerprint)
		assert.NotEqual(t, key.Data, w.key.Data, "a new key for a new certificate")
	}
}

// TestSkew: with a clock that is wrong, nothing is written that cannot be used, and it is said; when it is right again, all
// goes on.
func TestSkew(t *testing.T) {
	t.Parallel()
	skews := []time.Duration{-90 * time.Minute, -time.Hour, time.Hour, 400 * 24 * time.Hour}
	for i, skew := range slices.Concat(skews, skews) {
		w := newWorld(t, uint64(i)/4*2) // first without a Vault
		w.selfSign()
		w.start(2)
		a := w.root("a")
		w.skew = skew
		w.ask(a, a)
		w.churn(100)
		w.settle()
		assert.Less(t, len(w.writes), 40, "%s: keys are not made without end:\n%s", skew, strings.Join(w.writes, "\n"))
		assert.Equal(t, int64(skew/time.Second), w.certificate.Status.Trust.ClockSkewSeconds)
		if skew.Abs() > time.Hour {
			assert.NotEqual(t, certificatesv1.IssuedCertificateFinished, w.certificate.Status.State, skew)
			said := w.certificate.Status.Error + w.certificate.Status.Trust.WaitingFor
			assert.Contains(t, said, "certificate", "%s: it says what it waits for", skew)
		}
		w.skew = 0
		w.settle()
		w.assertEstablished(a, a)
		assert.Zero(t, w.certificate.Status.Trust.ClockSkewSeconds)
	}
}

// TestAFailureVouchesForNoRoot: where the Secret cannot get a root back that was just dropped from it, workloads trust that root until
// istiod takes the Secret up. It is not reported as trusted: whoever asked for it would have others sign with it.
func TestAFailureVouchesForNoRoot(t *testing.T) {
	t.Parallel()
	w := newWorld(t, 1)
	w.multi = true
	w.selfSign()
	w.start(2)
	a, b := w.root("a"), w.root("b")
	w.ask(a, a, b)
	w.settle()
	w.assertEstablished(a, a, b)
	w.ask(a, a)
	for w.step() {
		continue // until it is at rest
	}
	w.cacerts.Immutable = ptr.To(true)
	w.ask(a, a, b)
	w.step()
	status := w.certificate.Status
	assert.Equal(t, certificatesv1.IssuedCertificateFailed, status.State)
	assert.Contains(t, w.look().Trusted, rootPrint(b), "it is handed out still")
	assert.Equal(t, []string{rootPrint(a)}, status.Trust.Trusted)

	before := certificatesv1.IssuedCertificate{Status: *status.DeepCopy()}
	before.Generation, before.Status.ObservedGeneration = 8, 7
	assert.Equal(t, int64(7), unreadable(&before, assert.AnError).ObservedGeneration, "what is known is of an earlier generation")
}
