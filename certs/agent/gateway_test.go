package agent

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	"github.com/meshctl/meshctl/certs/pki"
	certificatesv1 "github.com/meshctl/meshctl/engine/api/certificates/v1"
)

// TestGatewaysJoinRotateLeave goes through the life of the certificate of gateways, with everything that may happen in between
// happening in any order. At no moment does the report rule out what a gateway has.
func TestGatewaysJoinRotateLeave(t *testing.T) {
	t.Parallel()
	for seed := range uint64(8) {
		w := newGatewayWorld(t, seed, int(seed%3)+1)
		a, b := w.root("a"), w.root("b")
		w.ask(a, a)
		w.churn(60)
		w.settle()
		w.assertEstablished(a, a)
		w.ask(a, a, b) // the engine: bundle first,
		w.churn(40)
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
		w.churn(60)
		w.settle()
		require.True(t, w.done, w.note)
		assert.Nil(t, w.cacerts)
		assert.Nil(t, w.key)
		assert.Nil(t, w.request)
	}
}

// TestGatewaysSettle: the first certificate counts at once, a change of it or of the roots a minute after it was written.
func TestGatewaysSettle(t *testing.T) {
	t.Parallel()
	w := newGatewayWorld(t, 1, 1)
	a, b := w.root("a"), w.root("b")
	aPrint, bPrint := rootPrint(a), rootPrint(b)
	both := sorted([]string{aPrint, bPrint})
	begin := w.now
	w.ask(a, a)
	w.work()
	w.assertEstablished(a, a)
	assert.Equal(t, begin, w.now, "nobody waits for the first")

	report := func() *certificatesv1.TrustReport { return w.certificate.Status.Trust }
	change := func(root *pki.Authority, bundle ...*pki.Authority) {
		t.Helper()
		w.pass(time.Hour)
		w.ask(root, bundle...)
		w.work()
		w.pass(59 * time.Second)
		w.work()
	}
	change(a, a, b)
	assert.Equal(t, []string{aPrint}, report().Trusted, "b is in the Secret, and may not be loaded")
	assert.Equal(t, certificatesv1.IssuedCertificateIssued, w.certificate.Status.State)
	assert.Equal(t, "gateways load Secret istio-system/meshctl-gateways; that counts as done 1m0s after it has changed", report().WaitingFor)
	w.pass(time.Second)
	w.work()
	w.assertEstablished(a, a, b)

	change(b, a, b)
	assert.Equal(t, both, report().Presented, "a's may still be loaded")
	assert.Equal(t, both, report().Trusted)
	assert.Equal(t, bPrint, report().Issuer.Root)
	assert.Equal(t, certificatesv1.IssuedCertificateIssued, w.certificate.Status.State)
	w.pass(time.Second)
	w.work()
	w.assertEstablished(b, a, b)

	change(b, b)
	w.assertEstablished(b, b) // nothing is new to anybody

	change(a, a) // as if it were another VirtualMesh
	assert.Empty(t, report().Trusted, "some gateways may trust only b, others only a")
	assert.Equal(t, both, report().Presented)
	w.pass(30 * time.Second)
	w.ask(b, b) // and back, before a minute has passed for everything
	w.work()
	assert.Equal(t, both, report().Presented)
	w.pass(time.Minute)
	w.work()
	w.assertEstablished(b, b)
}

// TestGatewaysSecretDeleted: gateways keep what they have loaded when their Secret is deleted. One that is written instead is not
// the first.
func TestGatewaysSecretDeleted(t *testing.T) {
	t.Parallel()
	w := newGatewayWorld(t, 1, 1)
	a, b := w.root("a"), w.root("b")
	w.ask(a, a)
	w.settle()
	w.cacerts = nil
	w.ask(b, b)
	w.work()
	assert.Equal(t, sorted([]string{rootPrint(a), rootPrint(b)}), w.certificate.Status.Trust.Presented)
	assert.Empty(t, w.certificate.Status.Trust.Trusted)
	w.honest("it was written again")
	w.settle()
	w.assertEstablished(b, b)
}

// TestGatewaysWaitForTheSignature: other roots are written at once, with the certificate that is there.
func TestGatewaysWaitForTheSignature(t *testing.T) {
	t.Parallel()
	w := newGatewayWorld(t, 1, 1)
	a, b := w.root("a"), w.root("b")
	w.ask(a, a)
	for w.step() {
	}
	require.Nil(t, w.cacerts, "it is not written without a certificate")
	assert.Equal(t, certificatesv1.IssuedCertificateRequested, w.certificate.Status.State)
	assert.Contains(t, w.certificate.Status.Trust.WaitingFor, "meshctl serve has to sign CertificateRequest "+ownNS+"/"+testName)
	w.settle()
	first := w.cacerts.DeepCopy()
	w.ask(b, b)
	for w.step() {
	}
	assert.Equal(t, first.Data[pki.TLSCertKey], w.cacerts.Data[pki.TLSCertKey])
	read, err := pki.ReadGatewayTLS(w.cacerts.Data)
	require.NoError(t, err)
	assert.True(t, read.Roots.Equal(bundleOf(a, b)), "the bundle, and its own root")
	assert.Equal(t, certificatesv1.IssuedCertificateRequested, w.certificate.Status.State)
	w.settle()
	w.assertEstablished(b, b)
}

// TestGatewaysRotationOrder: bundle, then certificate, then bundle; each is one write of the Secret.
func TestGatewaysRotationOrder(t *testing.T) {
	t.Parallel()
	w := newGatewayWorld(t, 1, 1)
	a, b := w.root("a"), w.root("b")
	w.ask(a, a)
	w.settle()
	for _, next := range []func(){func() { w.ask(a, a, b) }, func() { w.ask(b, a, b) }, func() { w.ask(b, b) }, func() { w.certificate = nil }} {
		next()
		w.settle()
	}
	const secret, key, request = "Secret istio-system/meshctl-gateways", "Secret gloo-mesh/" + testName, "CertificateRequest gloo-mesh/" + testName
	const gone = ": the gateways have no certificate of a VirtualMesh any more"
	assert.Equal(t, []string{
		"write " + key + ": a new private key", "write " + request + ": a request for a certificate", "write " + secret + ": it was missing",
		"write " + secret + ": gateways trust other roots from now on",
		"write " + key + ": a new private key", "write " + request + ": a request for a certificate",
		"write " + secret + ": gateways have another certificate from now on",
		"write " + secret + ": gateways trust other roots from now on",
		"delete " + secret + gone, "delete " + key + gone, "delete " + request + gone,
	}, w.writes)
}

// TestGatewaysAreNotCutOffInHaste: an IssuedCertificate that is briefly missing changes nothing.
func TestGatewaysAreNotCutOffInHaste(t *testing.T) {
	t.Parallel()
	w := newGatewayWorld(t, 1, 1)
	a := w.root("a")
	w.ask(a, a)
	w.settle()
	before := len(w.writes)
	gone := w.certificate
	w.certificate = nil
	w.work()
	w.pass(59 * time.Second)
	w.work()
	assert.Len(t, w.writes, before)
	assert.Contains(t, w.note, "its gateways lose their certificate if that stays so")
	w.certificate = gone
	w.settle()
	w.assertEstablished(a, a)
	assert.Len(t, w.writes, before)
}

// TestGatewaysRenewal: with a tenth of its life left, the certificate is replaced by one with a new key. All stays established.
func TestGatewaysRenewal(t *testing.T) {
	t.Parallel()
	w := newGatewayWorld(t, 1, 1)
	a := w.root("a")
	w.ask(a, a)
	w.settle()
	first, key := w.certificate.Status.Trust.Issuer.DeepCopy(), w.key.DeepCopy()
	w.now = first.NotAfter.Add(-37 * 24 * time.Hour)
	w.work()
	assert.Equal(t, first.Fingerprint, w.certificate.Status.Trust.Issuer.Fingerprint, "not due yet")
	w.now = first.NotAfter.Add(-36 * 24 * time.Hour)
	for range 3 {
		for w.step() {
			w.safe("a write")
			assert.True(t, w.established(a, a))
		}
		w.issue()
	}
	w.assertEstablished(a, a)
	assert.NotEqual(t, first.Fingerprint, w.certificate.Status.Trust.Issuer.Fingerprint)
	assert.NotEqual(t, key.Data, w.key.Data)

	w.now = w.certificate.Status.Trust.Issuer.NotAfter.Add(24 * time.Hour) // the agent was down
	w.work()
	w.assertEstablished(a, a)
}

// TestGatewaysByHand: whatever users do with the objects, the gateways come back to where they were, and the report does not
// rule out what they have on the way.
func TestGatewaysByHand(t *testing.T) {
	t.Parallel()
	annotation := func(value string) func(*gatewayWorld) {
		return func(w *gatewayWorld) { w.cacerts.Annotations[loadedAnnotation] = value }
	}
	cases := map[string]func(w *gatewayWorld){
		"Secret deleted":  func(w *gatewayWorld) { w.cacerts = nil },
		"key deleted":     func(w *gatewayWorld) { w.key = nil },
		"key broken":      func(w *gatewayWorld) { w.key.Data[privateKey] = []byte("x") },
		"request deleted": func(w *gatewayWorld) { w.request = nil },
		"all deleted":     func(w *gatewayWorld) { w.cacerts, w.key, w.request = nil, nil, nil },
		"a root added": func(w *gatewayWorld) {
			w.cacerts.Data[pki.TLSRootKey] = append(w.cacerts.Data[pki.TLSRootKey], w.root("x").Chain().PEM()...)
		},
		"all roots exchanged":          func(w *gatewayWorld) { w.cacerts.Data[pki.TLSRootKey] = w.root("x").Chain().PEM() },
		"roots broken":                 func(w *gatewayWorld) { w.cacerts.Data[pki.TLSRootKey] = []byte("x") },
		"no key in it":                 func(w *gatewayWorld) { delete(w.cacerts.Data, pki.TLSKeyKey) },
		"what Istio prefers":           func(w *gatewayWorld) { w.cacerts.Data["cacert"] = w.root("x").Chain().PEM() },
		"annotations gone":             func(w *gatewayWorld) { w.cacerts.Annotations = nil },
		"annotations and request gone": func(w *gatewayWorld) { w.cacerts.Annotations, w.request = nil, nil },
		"another's certificate": func(w *gatewayWorld) {
			key, err := ecKey(0)
			require.NoError(w.t, err)
			x := w.root("x")
			chain := signedForLeaf(w.world, x, key, gatewayHost)
			data, err := pki.GatewayTLS{Chain: chain, Key: key, Roots: bundleOf(x)}.Data()
			require.NoError(w.t, err)
			w.cacerts.Data = data
		},
		"another member's certificate, of the same root": func(w *gatewayWorld) {
			key, err := ecKey(0)
			require.NoError(w.t, err)
			root := w.known[w.certificate.Spec.Trust.Root]
			roots, err := pki.ReadBundle(w.cacerts.Data[pki.TLSRootKey])
			require.NoError(w.t, err)
			w.cacerts.Data, err = pki.GatewayTLS{Chain: signedForLeaf(w.world, root, key, testHost), Key: key, Roots: roots}.Data()
			require.NoError(w.t, err)
		},
		"no time":               annotation(""),
		"a time that is none":   annotation(`{"since":"x"}`),
		"a time without an end": annotation(`{"since":99999999999}`),
		"a time before all":     annotation(`{"since":-1,"trusted":["x"],"presented":[]}`),
		"other hosts": func(w *gatewayWorld) {
			w.certificate.Spec.CertOptions = &certificatesv1.CommonCertOptions{OrgName: "other"}
			w.certificate.Generation++
		},
	}
	for name, change := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newGatewayWorld(t, 3, 2)
			a, b := w.root("a"), w.root("b")
			w.ask(a, a, b)
			w.settle()
			w.assertEstablished(a, a, b)
			w.cacerts = w.cacerts.DeepCopy()
			change(w)
			if w.cacerts != nil {
				w.cacerts.ResourceVersion = "edited"
			}
			w.load(w.gateways[0]) // what a user did is loaded before the agent sees it
			for range 3 {
				for w.step() {
				}
				w.issue()
			}
			w.honest("it is put back")
			w.settle()
			w.assertEstablished(a, a, b)
			assert.Less(t, len(w.writes), 8, w.writes)
			w.certificate = nil
			w.settle()
			assert.True(t, w.done, "all of it can still go: %s", w.note)
			assert.Nil(t, w.cacerts)
		})
	}
}

// TestGatewaysClockSetBack: a clock that jumps lets nobody wait for ever, and takes back nothing that was reported.
func TestGatewaysClockSetBack(t *testing.T) {
	t.Parallel()
	w := newGatewayWorld(t, 1, 1)
	a, b := w.root("a"), w.root("b")
	w.ask(a, a)
	w.settle()
	w.now = w.now.Add(-30 * time.Minute) // after all was loaded
	for w.step() {
		assert.True(t, w.established(a, a))
	}
	w.assertEstablished(a, a)

	w.ask(a, a, b)
	w.work()
	require.False(t, w.established(a, a, b))
	w.now = w.now.Add(-20 * time.Minute) // before that
	w.work()
	w.pass(59 * time.Second)
	w.work()
	assert.Equal(t, []string{rootPrint(a)}, w.certificate.Status.Trust.Trusted)
	w.pass(time.Second)
	w.work()
	w.assertEstablished(a, a, b)
}

// TestGatewaysSlowWrite: a write that took long counts from when the API server did it. What others write, and times that it
// cannot be yet, hold up nothing.
func TestGatewaysSlowWrite(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		manager string
		later   time.Duration
		waits   bool
	}{
		"its own": {FieldManager, 40 * time.Second, true}, "another's": {"kubectl", 40 * time.Second, false},
		"of tomorrow": {FieldManager, 24 * time.Hour, false},
	} {
		w := newGatewayWorld(t, 1, 0)
		a, b := w.root("a"), w.root("b")
		w.ask(a, a)
		w.settle()
		w.ask(a, a, b)
		w.work()
		w.cacerts.ManagedFields = []metav1.ManagedFieldsEntry{{Manager: c.manager, Time: ptr.To(metav1.NewTime(w.now.Add(c.later)))}}
		w.pass(time.Minute)
		w.work()
		assert.Equal(t, !c.waits, w.established(a, a, b), name)
		w.pass(c.later)
		w.work()
		w.assertEstablished(a, a, b)
	}
}

// TestGatewaysSkew: with a clock that is wrong, nothing is written that cannot be used, and it is said.
func TestGatewaysSkew(t *testing.T) {
	t.Parallel()
	for _, skew := range []time.Duration{-90 * time.Minute, time.Hour, 400 * 24 * time.Hour} {
		w := newGatewayWorld(t, 1, 1)
		a := w.root("a")
		w.skew = skew
		w.ask(a, a)
		w.settle()
		assert.Less(t, len(w.writes), 40, w.writes)
		assert.Equal(t, int64(skew/time.Second), w.certificate.Status.Trust.ClockSkewSeconds)
		if skew.Abs() > time.Hour {
			assert.Nil(t, w.cacerts)
			assert.Contains(t, w.certificate.Status.Error+w.certificate.Status.Trust.WaitingFor, "certificate")
		}
		w.skew = 0
		w.settle()
		w.assertEstablished(a, a)
		assert.Zero(t, w.certificate.Status.Trust.ClockSkewSeconds)
	}
}
