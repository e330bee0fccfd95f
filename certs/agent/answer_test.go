package agent

import (
	crand "crypto/rand"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/meshctl/meshctl/certs/pki"
	certificatesv1 "github.com/meshctl/meshctl/engine/api/certificates/v1"
)

// signers are seeds of worlds in which meshctl serve signs, and in which a Vault does.
var signers = map[string]uint64{"": 1, " with Vault": 3}

// requested is a world whose agent has asked for a certificate.
func requested(t *testing.T, seed uint64) (*world, *pki.Authority) {
	t.Helper()
	w := newWorld(t, seed)
	w.selfSign()
	w.start(1)
	a := w.root("a")
	w.ask(a, a)
	for w.step() {
	}
	require.NotNil(t, w.request)
	require.Equal(t, certificatesv1.IssuedCertificateRequested, w.certificate.Status.State)
	return w, a
}

// TestForgedAnswers: what a status says is not believed. Each of them is reported, is asked for again after a while, and in
// the end the right one is used.
func TestForgedAnswers(t *testing.T) {
	t.Parallel()
	otherKey := func(w *world, root *pki.Authority, hosts ...string) pki.Chain {
		key, err := ecKey(0)
		require.NoError(w.t, err)
		return signedFor(w, root, key, hosts...)
	}
	cases := map[string]struct {
		answer func(w *world, a *pki.Authority) pki.Chain
		want   string
	}{
		"another root": {func(w *world, _ *pki.Authority) pki.Chain {
			return signed(w.t, w.root("other"), w.request.Spec.CertificateSigningRequest, w.now, time.Hour)
		}, "missing"},
		"another key": {func(w *world, a *pki.Authority) pki.Chain { return otherKey(w, a, testHost) }, "is not for this private key"},
		"other hosts": {func(w *world, a *pki.Authority) pki.Chain {
			return signedFor(w, a, w.facts().privateKey, "spiffe://cluster.local/ns/x/sa/y")
		}, "is that of"},
		"more hosts": {func(w *world, a *pki.Authority) pki.Chain {
			return signedFor(w, a, w.facts().privateKey, testHost, "spiffe://cluster.local/ns/x/sa/y")
		}, "it is for the hosts"},
		"a DNS name more": {func(w *world, a *pki.Authority) pki.Chain {
			return signedFor(w, a, w.facts().privateKey, testHost, "x.example")
		}, "it is for the hosts"},
		"the root itself": {func(_ *world, a *pki.Authority) pki.Chain { return append(a.Chain(), a.Chain()...) }, "is not for this private key"},
	}
	for _, by := range signers {
		for name, c := range cases {
			t.Run(name, func(t *testing.T) {
				t.Parallel()
				w, a := requested(t, by)
				before := w.cacerts.DeepCopy()
				chain := c.answer(w, a)
				w.request.Status = certificatesv1.CertificateRequestStatus{
					ObservedGeneration: w.request.Generation, State: certificatesv1.CertificateRequestFinished,
					SignedCertificate: chain[:1].PEM(), SigningRootCa: chain[1:].PEM(),
				}
				for w.step() {
				}
				assert.Equal(t, certificatesv1.IssuedCertificateFailed, w.certificate.Status.State)
				assert.Contains(t, w.certificate.Status.Error, c.want)
				assert.Equal(t, before.Data, w.cacerts.Data)
				w.now = w.now.Add(2 * retryAfter)
				w.settle()
				w.assertEstablished(a, a)
			})
		}
	}
}

func signedFor(w *world, root *pki.Authority, key pki.Key, hosts ...string) pki.Chain {
	w.t.Helper()
	csr, err := pki.NewRequest(crand.Reader, key, "Istio", hosts)
	require.NoError(w.t, err)
	return signed(w.t, root, csr, w.now, time.Hour)
}

// TestRefused: the reason of the issuer is passed on, and no new key is made.
func TestRefused(t *testing.T) {
	t.Parallel()
	for by, seed := range signers {
		refused(t, seed, map[string]string{"": "meshctl serve", " with Vault": "Vault"}[by])
	}
}

func refused(t *testing.T, seed uint64, by string) {
	t.Helper()
	w, a := requested(t, seed)
	key := w.key.ResourceVersion
	w.request.Status = certificatesv1.CertificateRequestStatus{
		ObservedGeneration: w.request.Generation, State: certificatesv1.CertificateRequestFailed, Error: "no such root",
	}
	w.now = w.now.Add(time.Hour)
	for w.step() {
	}
	assert.Equal(t, certificatesv1.IssuedCertificateFailed, w.certificate.Status.State)
	assert.Contains(t, w.certificate.Status.Error, "failed to be signed by "+by+": no such root")
	assert.Equal(t, key, w.key.ResourceVersion)
	assert.Equal(t, w.vault != nil, w.sign != nil, "a Vault is asked again")
	w.request.Status = certificatesv1.CertificateRequestStatus{}
	w.settle()
	w.assertEstablished(a, a)
}

// TestByHand: whatever users do with the objects, the mesh comes back to where it was, and is safe on the way.
func TestByHand(t *testing.T) {
	t.Parallel()
	cases := map[string]func(w *world){
		"cacerts deleted": func(w *world) { w.cacerts = nil },
		"key deleted":     func(w *world) { w.key = nil },
		"key broken":      func(w *world) { w.key.Data[privateKey] = []byte("x") },
		"request deleted": func(w *world) { w.request = nil },
		"all deleted":     func(w *world) { w.cacerts, w.key, w.request = nil, nil, nil },
		"roots of cacerts edited": func(w *world) {
			w.cacerts.Data[pki.RootCertKey] = append(w.cacerts.Data[pki.RootCertKey], w.root("x").Chain().PEM()...)
		},
		"cacerts broken":              func(w *world) { delete(w.cacerts.Data, pki.CAKeyKey) },
		"annotations of cacerts gone": func(w *world) { w.cacerts.Annotations = nil },
		"annotations of cacerts gone before another key is made": func(w *world) {
			w.cacerts.Annotations = nil
			w.certificate.Spec.Hosts = []string{"spiffe://new.example/ns/istio-system/sa/istiod"}
			w.certificate.Generation++
		},
		"another CA in cacerts": func(w *world) {
			data, err := pki.CACerts{Authority: w.root("x"), Roots: bundleOf(w.known[w.certificate.Spec.Trust.Root], w.known[rootPrint(w.root("y"))])}.Data()
			if err == nil {
				w.cacerts.Data = data
			}
			w.cacerts.Data[pki.CACertKey] = []byte("x")
		},
		"other hosts": func(w *world) {
			w.certificate.Spec.Hosts = []string{"spiffe://new.example/ns/istio-system/sa/istiod"}
			w.certificate.Generation++
		},
	}
	for _, by := range signers {
		for name, change := range cases {
			t.Run(name, func(t *testing.T) {
				t.Parallel()
				w, a := requested(t, by)
				w.settle()
				w.assertEstablished(a, a)
				change(w)
				w.version++
				if w.cacerts != nil {
					w.cacerts = w.cacerts.DeepCopy()
				}
				// While cacerts is broken or gone, only the agent acts: what istiod would do is the user's doing.
				for w.step() {
				}
				w.issue()
				for w.step() {
				}
				w.read = nil
				w.settle()
				w.assertEstablished(a, a)
				assert.False(t, w.certificate.Status.Trust.UserSecret, "it is renewed")
				w.certificate = nil
				w.settle()
				assert.True(t, w.done, "it can still leave: %s", w.note)
			})
		}
	}
}

// TestNothingToGoBackTo: without a former CA, cacerts stays, and says why.
func TestNothingToGoBackTo(t *testing.T) {
	t.Parallel()
	w, a := requested(t, 1)
	w.settle()
	w.assertEstablished(a, a)
	have := w.cacerts.DeepCopy()
	w.selfSigned, w.certificate = nil, nil
	w.settle()
	require.True(t, w.done)
	assert.Equal(t, have.Data, w.cacerts.Data)
	assert.Contains(t, w.cacerts.Annotations[leftAnnotation], "is not renewed")
	assert.Nil(t, w.key)
	w.at = nil
	w.ask(a, a) // it comes back
	w.settle()
	w.assertEstablished(a, a)
	assert.NotContains(t, w.cacerts.Annotations, leftAnnotation)
}

// TestEmptyMesh: where nobody can be cut off, the first cacerts has the new signer.
func TestEmptyMesh(t *testing.T) {
	t.Parallel()
	w := newWorld(t, 1)
	a := w.root("a")
	w.ask(a, a)
	w.settle()
	w.assertEmptyJoined(a)
}

func (w *world) assertEmptyJoined(a *pki.Authority) {
	w.t.Helper()
	require.NotNil(w.t, w.cacerts)
	read, err := pki.ReadCACerts(w.cacerts.Data)
	require.NoError(w.t, err)
	assert.Equal(w.t, rootPrint(a), rootPrint(read.Authority))
}

// TestIstioGenerated: what istiod made for itself in cacerts needs no permission, and is put back.
func TestIstioGenerated(t *testing.T) {
	t.Parallel()
	w := newWorld(t, 3)
	self, a := w.root("self"), w.root("a")
	data, err := pki.CACerts{Authority: self, Roots: bundleOf(self)}.Data()
	require.NoError(t, err)
	data[istioGenerated] = []byte{}
	w.cacerts = w.secret(CACertsName, "istio.io/ca-root", data)
	w.start(2)
	w.ask(a, a)
	w.churn(60)
	w.settle()
	w.assertEstablished(a, a)
	assert.NotContains(t, w.cacerts.Data, istioGenerated)
	w.certificate = nil
	w.churn(60)
	w.settle()
	require.True(t, w.done, w.note)
	assert.Equal(t, data, w.cacerts.Data)
}
