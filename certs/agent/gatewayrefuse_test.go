package agent

import (
	crand "crypto/rand"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/utils/ptr"

	"github.com/meshctl/meshctl/certs/pki"
	certificatesv1 "github.com/meshctl/meshctl/engine/api/certificates/v1"
)

func signedForLeaf(w *world, root *pki.Authority, key pki.Key, hosts ...string) pki.Chain {
	w.t.Helper()
	csr, err := pki.NewRequest(crand.Reader, key, "Istio", hosts)
	require.NoError(w.t, err)
	return signedLeaf(w.t, root, csr, w.now, time.Hour)
}

// TestGatewaysRefuse: what is somebody else's is not written, and what is asked for wrongly is said; when it is corrected, all
// goes on.
func TestGatewaysRefuse(t *testing.T) {
	t.Parallel()
	foreign := func(annotations map[string]string) func(*gatewayWorld) {
		return func(w *gatewayWorld) {
			w.cacerts = w.secret("meshctl-gateways", corev1.SecretTypeTLS, map[string][]byte{pki.TLSCertKey: []byte("x"), pki.TLSKeyKey: []byte("y")})
			w.cacerts.Annotations = annotations
		}
	}
	for name, c := range map[string]struct {
		change, correct func(w *gatewayWorld)
		says            string
	}{
		"a user's Secret": {
			foreign(nil), func(w *gatewayWorld) { w.cacerts = nil }, "Secret istio-system/meshctl-gateways was made by somebody else, and is not replaced",
		},
		"another IssuedCertificate's": {
			foreign(map[string]string{OwnerAnnotation: "other/mesh"}), func(w *gatewayWorld) { w.cacerts = nil }, "is managed for IssuedCertificate other/mesh",
		},
		"with permission, which is for cacerts": {func(w *gatewayWorld) {
			foreign(nil)(w)
			w.certificate.Spec.Trust.ReplaceUserSecret = true
		}, func(w *gatewayWorld) { w.cacerts = nil }, "is not replaced"},
		"a Vault": {
			func(w *gatewayWorld) {
				w.certificate.Spec.AgentCa = &certificatesv1.AgentCA{Vault: &certificatesv1.VaultCA{}}
			},
			func(w *gatewayWorld) { w.certificate.Spec.AgentCa = nil }, "only meshctl serve signs them",
		},
		"an unknown usage": {
			func(w *gatewayWorld) { w.certificate.Spec.Trust.Usage = "Other" },
			func(w *gatewayWorld) { w.certificate.Spec.Trust.Usage = certificatesv1.TrustUsageGateway }, `the usage "Other", which this agent does not know`,
		},
		"a root that is not in the bundle": {
			func(w *gatewayWorld) { w.certificate.Spec.Trust.Root = strings.Repeat("0", 64) },
			func(w *gatewayWorld) { w.ask(w.known[w.only()], w.known[w.only()]) }, "is not in spec.trust.bundle",
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newGatewayWorld(t, 1, 0)
			a := w.root("a")
			w.ask(a, a)
			c.change(w)
			before := w.cacerts.DeepCopy()
			w.work()
			assert.Equal(t, certificatesv1.IssuedCertificateFailed, w.certificate.Status.State)
			assert.Contains(t, w.certificate.Status.Error, c.says)
			assert.Empty(t, w.writes)
			assert.Equal(t, before, w.cacerts)
			c.correct(w)
			w.certificate.Generation++
			w.settle()
			w.assertEstablished(a, a)
		})
	}
}

// only is the fingerprint of the root of a world that has one.
func (w *world) only() string {
	for print := range w.known {
		return print
	}
	return ""
}

// TestGatewaysImmutable: it is said; what is there goes on.
func TestGatewaysImmutable(t *testing.T) {
	t.Parallel()
	w := newGatewayWorld(t, 1, 1)
	a, b := w.root("a"), w.root("b")
	w.ask(a, a)
	w.settle()
	w.cacerts = w.cacerts.DeepCopy()
	w.cacerts.Immutable = ptr.To(true)
	w.ask(a, a, b)
	before := len(w.writes)
	w.work()
	assert.Contains(t, w.certificate.Status.Error, "is immutable")
	assert.Len(t, w.writes, before)
}

// TestUsageStays: what a certificate was made for does not become another by an edit, so that neither cacerts nor the Secret of
// gateways is written with what is for the other. Once the first is gone, it can be asked for.
func TestUsageStays(t *testing.T) {
	t.Parallel()
	w := newGatewayWorld(t, 1, 1)
	a := w.root("a")
	w.ask(a, a)
	w.settle()
	secret, writes := w.cacerts.DeepCopy(), len(w.writes)
	w.certificate.Spec.Trust.Usage = certificatesv1.TrustUsageCA
	w.certificate.Generation++
	w.work()
	assert.Equal(t, certificatesv1.IssuedCertificateFailed, w.certificate.Status.State)
	assert.Contains(t, w.certificate.Status.Error, `was for the usage "Gateway", and is for "" now; delete it`)
	assert.Len(t, w.writes, writes)
	assert.Equal(t, secret, w.cacerts)
	w.certificate, w.at = nil, nil
	w.settle()
	assert.True(t, w.done, w.note)
	assert.Nil(t, w.cacerts, "what it was for is known from the record")
}

// TestGatewaysForgedAnswers: what a status says is not believed, in particular no CA.
func TestGatewaysForgedAnswers(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		answer func(w *gatewayWorld, a *pki.Authority) pki.Chain
		want   string
	}{
		"a CA": {func(w *gatewayWorld, a *pki.Authority) pki.Chain {
			return signed(w.t, a, w.request.Spec.CertificateSigningRequest, w.now, time.Hour)
		}, "is a CA, not a workload"},
		"another root": {func(w *gatewayWorld, _ *pki.Authority) pki.Chain {
			return signedLeaf(w.t, w.root("other"), w.request.Spec.CertificateSigningRequest, w.now, time.Hour)
		}, "missing"},
		"another key": {func(w *gatewayWorld, a *pki.Authority) pki.Chain {
			key, err := ecKey(0)
			require.NoError(w.t, err)
			return signedForLeaf(w.world, a, key, gatewayHost)
		}, "is not for this private key"},
		"other hosts": {func(w *gatewayWorld, a *pki.Authority) pki.Chain {
			return signedForLeaf(w.world, a, w.facts().privateKey, testHost)
		}, "is that of"},
		"more hosts": {func(w *gatewayWorld, a *pki.Authority) pki.Chain {
			return signedForLeaf(w.world, a, w.facts().privateKey, gatewayHost, testHost)
		}, "it is for the hosts"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newGatewayWorld(t, 1, 1)
			a := w.root("a")
			w.ask(a, a)
			for w.step() {
			}
			chain := c.answer(w, a)
			w.request.Status = certificatesv1.CertificateRequestStatus{
				ObservedGeneration: w.request.Generation, State: certificatesv1.CertificateRequestFinished, SignedCertificate: chain[:1].PEM(),
			}
			for w.step() {
			}
			assert.Equal(t, certificatesv1.IssuedCertificateFailed, w.certificate.Status.State)
			assert.Contains(t, w.certificate.Status.Error, c.want)
			assert.Nil(t, w.cacerts)
			w.now = w.now.Add(2 * retryAfter)
			w.settle()
			w.assertEstablished(a, a)
		})
	}
}

// TestNoLeafForAControlPlane: a certificate that signs nothing is not what a control plane asked for.
func TestNoLeafForAControlPlane(t *testing.T) {
	t.Parallel()
	w, a := requested(t, 1)
	chain := signedLeaf(t, a, w.request.Spec.CertificateSigningRequest, w.now, time.Hour)
	w.request.Status = certificatesv1.CertificateRequestStatus{
		ObservedGeneration: w.request.Generation, State: certificatesv1.CertificateRequestFinished, SignedCertificate: chain[:1].PEM(),
	}
	for w.step() {
	}
	assert.Contains(t, w.certificate.Status.Error, "is not a CA")
}
