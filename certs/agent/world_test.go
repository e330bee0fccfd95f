package agent

import (
	"crypto/elliptic"
	crand "crypto/rand"
	"fmt"
	"io"
	"maps"
	"math/rand/v2"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/meshctl/meshctl/certs/pki"
	certificatesv1 "github.com/meshctl/meshctl/engine/api/certificates/v1"
	commonv1 "github.com/meshctl/meshctl/engine/api/common/v1"
	"github.com/meshctl/meshctl/engine/snapshot"
)

const (
	testName = "istiod-istio-system-west"
	ownNS    = "gloo-mesh"
	meshNS   = "istio-system"
	testHost = "spiffe://cluster.local/ns/istio-system/sa/istiod"
)

var testStart = time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)

func ecKey(int) (pki.Key, error) { return pki.NewECDSAKey(crand.Reader, elliptic.P256()) }

func newRoot(t testing.TB, name string) *pki.Authority {
	t.Helper()
	key, err := ecKey(0)
	require.NoError(t, err)
	root, err := pki.NewRoot(crand.Reader, testStart, key, pki.Subject{Organization: "test", CommonName: name},
		pki.Life{Lasts: 10 * 365 * 24 * time.Hour, Backdate: time.Hour})
	require.NoError(t, err)
	return root
}

func newIntermediate(t testing.TB, root *pki.Authority, at time.Time) *pki.Authority {
	t.Helper()
	key, err := ecKey(0)
	require.NoError(t, err)
	text, err := pki.NewRequest(crand.Reader, key, "Istio", []string{testHost})
	require.NoError(t, err)
	chain := signed(t, root, text, at, 365*24*time.Hour)
	out, err := pki.NewAuthority(chain, key)
	require.NoError(t, err)
	return out
}

func signed(t testing.TB, root *pki.Authority, csr []byte, at time.Time, lasts time.Duration) pki.Chain {
	t.Helper()
	return signedBy(t, root.Sign, csr, at, lasts)
}

// signedLeaf is for gateways.
func signedLeaf(t testing.TB, root *pki.Authority, csr []byte, at time.Time, lasts time.Duration) pki.Chain {
	t.Helper()
	return signedBy(t, root.SignLeaf, csr, at, lasts)
}

func signedBy(t testing.TB, sign func(io.Reader, time.Time, *pki.Request, pki.Grant) (pki.Issued, error), csr []byte, at time.Time, lasts time.Duration) pki.Chain {
	t.Helper()
	request, err := pki.ReadRequest(csr)
	require.NoError(t, err)
	issued, err := sign(crand.Reader, at, request, pki.Grant{
		Subject: pki.Subject{Organization: "Istio", CommonName: "mesh"}, Hosts: request.Hosts(), Life: pki.Life{Lasts: lasts, Backdate: time.Hour},
	})
	require.NoError(t, err)
	return issued.Chain
}

// rootPrint is the fingerprint of the root of an authority.
func rootPrint(a *pki.Authority) string { return pki.Fingerprint(rootOf(a)) }

func bundleOf(roots ...*pki.Authority) pki.Bundle {
	var out pki.Bundle
	for _, root := range roots {
		out = out.Union(pki.NewBundle(rootOf(root)))
	}
	return out
}

// istiod and the workloads of a world: what each presents and trusts.
type party struct {
	root    string
	trusted pki.Bundle
}

// world is a cluster with an agent, an istiod that does what the real one does, workloads, and an issuer.
type world struct {
	t      testing.TB
	random *rand.Rand
	now    time.Time
	skew   time.Duration
	// objects of the cluster
	certificate                      *certificatesv1.IssuedCertificate
	request                          *certificatesv1.CertificateRequest
	key, cacerts, backup, selfSigned *corev1.Secret
	version                          int
	// known are all roots, by fingerprint.
	known map[string]*pki.Authority
	// multi: istiod has ISTIO_MULTIROOT_MESH.
	multi bool
	// istiod is nil while none runs. startedWith are the bytes of root-cert.pem that it started with.
	istiod      *party
	startedWith string
	workloads   []*party
	// lasts is the life of certificates that are issued.
	lasts time.Duration
	// vault signs instead of meshctl serve, if it is set; sign is what the agent wants signed by it.
	vault *certificatesv1.VaultCA
	sign  *request
	// blind: the Verifier fails.
	blind bool
	// of the agent
	at        *record
	goneSince time.Time
	writes    []string
	done      bool
	// read is what cacerts has, of a version: tests look often.
	read        *pki.CACerts
	readVersion string
	verified    string
	note        string
}

func newWorld(t testing.TB, seed uint64) *world {
	t.Helper()
	w := &world{
		t: t, random: rand.New(rand.NewPCG(seed, 1)), now: testStart, known: map[string]*pki.Authority{}, lasts: 365 * 24 * time.Hour,
	}
	if seed%4 > 1 {
		w.vault = &certificatesv1.VaultCA{Server: "https://vault.example.com"}
	}
	return w
}

func (w *world) root(name string) *pki.Authority {
	root := newRoot(w.t, name)
	w.known[rootPrint(root)] = root
	return root
}

// selfSign gives istiod its own root, and starts it with workloads.
func (w *world) selfSign() *pki.Authority {
	root := w.root("self")
	data, err := pki.CACerts{Authority: root, Roots: bundleOf(root)}.Data()
	require.NoError(w.t, err)
	data[pki.CAChainKey], data["key.pem"] = nil, nil
	w.selfSigned = w.secret(SelfSignedName, "istio.io/ca-root", data)
	return root
}

// userCACerts makes a Secret cacerts of a user's.
func (w *world) userCACerts(root *pki.Authority) *corev1.Secret {
	data, err := pki.CACerts{Authority: newIntermediate(w.t, root, w.now), Roots: bundleOf(root)}.Data()
	require.NoError(w.t, err)
	data["README"] = []byte("made by hand")
	w.cacerts = w.secret(CACertsName, corev1.SecretTypeOpaque, data)
	w.cacerts.Labels = map[string]string{"team": "pki"}
	w.cacerts.Annotations = map[string]string{"note": "do not touch"}
	return w.cacerts.DeepCopy()
}

func (w *world) secret(name string, kind corev1.SecretType, data map[string][]byte) *corev1.Secret {
	w.version++
	return &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: meshNS, Name: name, ResourceVersion: strconv.Itoa(w.version)}, Type: kind, Data: data}
}

// start starts istiod and some workloads.
func (w *world) start(workloads int) {
	w.restartIstiod()
	for range workloads {
		p := &party{}
		w.workloads = append(w.workloads, p)
		w.renew(p)
	}
}

func (w *world) ask(root *pki.Authority, bundle ...*pki.Authority) {
	spec := certificatesv1.IssuedCertificateSpec{
		Hosts: []string{testHost}, IssuedCertificateSecret: &commonv1.ObjectRef{Namespace: meshNS, Name: CACertsName},
		Trust: &certificatesv1.TrustRequest{
			Root: rootPrint(root), Bundle: string(bundleOf(bundle...).PEM()), ControlPlane: map[string]string{"istio": "pilot"},
		},
	}
	if w.vault != nil {
		spec.AgentCa = &certificatesv1.AgentCA{Vault: w.vault}
	}
	if w.certificate == nil {
		w.certificate = &certificatesv1.IssuedCertificate{ObjectMeta: metav1.ObjectMeta{Namespace: ownNS, Name: testName}}
	} else {
		spec.Trust.ReplaceUserSecret = w.certificate.Spec.Trust.ReplaceUserSecret
	}
	w.certificate.Generation++
	w.certificate.Spec = spec
}

// source is what istiod reads its CA from.
func (w *world) source() (*pki.CACerts, string) {
	secret := w.cacerts
	if secret == nil {
		read, err := readSelfSigned(w.selfSigned)
		require.NoError(w.t, err)
		return read, "self-signed"
	}
	if w.read == nil || w.readVersion != secret.ResourceVersion {
		read, err := pki.ReadCACerts(secret.Data)
		require.NoError(w.t, err, "istiod would not start: %s", strings.Join(w.writes, "\n"))
		w.read, w.readVersion = &read, secret.ResourceVersion
	}
	return w.read, string(secret.Data[pki.RootCertKey])
}

func (w *world) restartIstiod() {
	read, bytes := w.source()
	if read == nil {
		return
	}
	w.istiod, w.startedWith = &party{root: rootPrint(read.Authority), trusted: read.Roots}, bytes
}

// takesUp is handleEvent of istiod: whether it takes up cacerts without a restart.
func (w *world) takesUp() bool {
	read, bytes := w.source()
	if w.istiod == nil || bytes == "self-signed" || w.startedWith == "self-signed" {
		return false
	}
	return bytes == w.startedWith || w.multi && (read.Roots.Covers(w.istiod.trusted) || w.istiod.trusted.Covers(read.Roots))
}

func (w *world) takeUp() {
	if !w.takesUp() {
		return
	}
	read, bytes := w.source()
	w.istiod, w.startedWith = &party{root: rootPrint(read.Authority), trusted: read.Roots}, bytes
}

func (w *world) renew(p *party) {
	if w.istiod != nil {
		*p = *w.istiod
	}
}

// issue signs the request, as meshctl serve does, or a Vault that the agent asks.
func (w *world) issue() {
	if w.request == nil || w.certificate == nil || w.request.Status.ObservedGeneration == w.request.Generation {
		return
	}
	if w.certificate.Spec.AgentCa != nil {
		if w.sign == nil || w.sign.request.Generation != w.request.Generation {
			return
		}
		require.Equal(w.t, w.certificate.Spec.Trust.Root, pki.Fingerprint(w.sign.root), "the agent asks for what is asked of it")
	}
	root := w.known[w.certificate.Spec.Trust.Root]
	chain := signed(w.t, root, w.request.Spec.CertificateSigningRequest, w.now, w.lasts)
	if w.certificate.Spec.Trust.Usage == certificatesv1.TrustUsageGateway {
		chain = signedLeaf(w.t, root, w.request.Spec.CertificateSigningRequest, w.now, w.lasts)
	}
	w.request.Status = certificatesv1.CertificateRequestStatus{
		ObservedGeneration: w.request.Generation, State: certificatesv1.CertificateRequestFinished,
		SignedCertificate: chain[:1].PEM(), SigningRootCa: chain[1:].PEM(),
	}
}

// look is an honest Verifier.
func (w *world) look() *MeshState {
	if w.blind {
		return nil
	}
	m := &MeshState{MultiRoot: w.multi}
	if w.istiod == nil {
		require.Empty(w.t, w.workloads)
		return m
	}
	trusted, presented := w.istiod.trusted.Fingerprints(), []string{w.istiod.root}
	for _, p := range w.workloads {
		trusted = slices.DeleteFunc(trusted, func(root string) bool { return !slices.Contains(p.trusted.Fingerprints(), root) })
		presented = append(presented, p.root)
	}
	m.Trusted, m.Presented = trusted, sorted(presented)
	m.ControlPlane.Total, m.Trusting.Total, m.Presenting.Total = 1, int32(len(w.workloads)), int32(len(w.workloads))
	if read, _ := w.source(); read != nil && rootPrint(read.Authority) == w.istiod.root && read.Roots.Equal(w.istiod.trusted) {
		m.ControlPlane.Done = 1
	}
	m.NeedsControlPlane = m.ControlPlane.Done == 0 && !w.takesUp()
	for _, p := range w.workloads {
		if p.trusted.Covers(w.istiod.trusted) { // as verify.Judge: nobody restarts to forget a root
			m.Trusting.Done++
		}
		if p.root == w.istiod.root {
			m.Presenting.Done++
		}
	}
	m.NeedsWorkloads = m.ControlPlane.Done == 1 && m.Trusting.Done+m.Presenting.Done < m.Trusting.Total+m.Presenting.Total
	return m
}

func (w *world) facts() *facts {
	o := observed{
		now: w.now.Add(w.skew), skew: w.skew, namespace: ownNS, name: testName, certificate: w.certificate, request: w.request, key: w.key,
		cacerts: w.cacerts, backup: w.backup, selfSigned: w.selfSigned, leaveAfter: time.Minute, settleAfter: time.Minute,
	}
	if w.certificate != nil {
		w.goneSince = time.Time{}
	} else if w.goneSince.IsZero() {
		w.goneSince = w.now
	}
	if w.certificate == nil {
		o.gone = w.now.Sub(w.goneSince)
	}
	at := where(w.certificate, recordOf(w.request), w.at)
	require.NotNil(w.t, at)
	w.at = at
	f := newFacts(o, *at)
	if f.mesh = w.look(); f.mesh == nil {
		f.meshErr = fmt.Errorf("blind")
	}
	return f
}

// step is one step of the agent; it reports whether something was written.
func (w *world) step() bool {
	d := decide(w.facts())
	w.done, w.note, w.sign = d.done, d.note, d.sign
	require.False(w.t, d.sign != nil && (w.certificate.Spec.AgentCa == nil || d.write != nil))
	if d.write != nil {
		w.perform(d.write)
		return true
	}
	if d.status != nil && differs(&w.certificate.Status, d.status) {
		w.certificate.Status = *d.status
		require.False(w.t, differs(&w.certificate.Status, decide(w.facts()).status), "written twice")
	}
	return false
}

func (w *world) perform(d *write) {
	w.t.Helper()
	s := &store{newKey: ecKey}
	_, _, object, err := s.build(d)
	require.NoError(w.t, err)
	w.writes = append(w.writes, d.String())
	var slot **corev1.Secret
	switch {
	case d.request != nil:
		w.putRequest(d)
		return
	case object.GetNamespace() == ownNS:
		slot = &w.key
	default:
		slot = map[string]**corev1.Secret{CACertsName: &w.cacerts, snapshot.GatewaySecret: &w.cacerts, BackupName: &w.backup}[object.GetName()]
	}
	require.NotNil(w.t, slot, "the agent must not write %s", object.GetName())
	have := ""
	if *slot != nil {
		have = (*slot).ResourceVersion
	}
	require.Equal(w.t, have, object.GetResourceVersion(), "a write names the version that it replaces: %s", d)
	if d.verb == remove {
		*slot = nil
		return
	}
	built, _, _, err := s.build(d)
	require.NoError(w.t, err)
	secret, ok := built.(*corev1.Secret)
	require.True(w.t, ok)
	if *slot != nil {
		require.Equal(w.t, (*slot).Type, secret.Type, "the API server refuses to change the type")
	}
	w.version++
	secret.ResourceVersion = strconv.Itoa(w.version)
	*slot = secret
}

func (w *world) putRequest(d *write) {
	if d.verb == remove {
		w.request = nil
		return
	}
	built, _, _, err := (&store{newKey: ecKey}).build(d)
	require.NoError(w.t, err)
	request, ok := built.(*certificatesv1.CertificateRequest)
	require.True(w.t, ok)
	w.version++
	request.ResourceVersion = strconv.Itoa(w.version)
	request.Generation = 1
	if w.request != nil {
		request.Status, request.Generation = w.request.Status, w.request.Generation
		if string(w.request.Spec.CertificateSigningRequest) != string(request.Spec.CertificateSigningRequest) {
			request.Generation++
		}
	}
	w.request = request
}

// safe checks what must hold at every moment, whatever happens next.
func (w *world) safe(after string) {
	w.t.Helper()
	if w.cacerts != nil && w.cacerts.ResourceVersion != w.verified {
		w.verified = w.cacerts.ResourceVersion
		read, _ := w.source()
		require.NoError(w.t, pki.Verify(read.Authority.Chain(), read.Roots, w.now, pki.Want{Usage: pki.ForCA}), "after %s", after)
	}
	var signs []string
	if w.istiod != nil {
		signs = append(signs, w.istiod.root)
	}
	if read, _ := w.source(); read != nil { // istiod may restart at any time
		signs = append(signs, rootPrint(read.Authority))
		for _, p := range w.workloads {
			require.Contains(w.t, read.Roots.Fingerprints(), p.root, "after %s: a workload that starts would not trust a running one; %s", after, strings.Join(w.writes, "\n"))
		}
	}
	for _, p := range w.workloads {
		for _, q := range w.workloads {
			require.Contains(w.t, p.trusted.Fingerprints(), q.root, "after %s: a workload does not trust another; %s", after, strings.Join(w.writes, "\n"))
		}
		for _, root := range signs {
			require.Contains(w.t, p.trusted.Fingerprints(), root, "after %s: a workload does not trust what istiod signs; %s", after, strings.Join(w.writes, "\n"))
		}
	}
}

// events are what may happen at any time.
func (w *world) events() map[string]func() {
	events := map[string]func(){
		"agent": func() { w.step() }, "issue": w.issue, "restart of istiod": w.restartIstiod, "istiod takes up": w.takeUp,
		"blindness": func() { w.blind = w.random.IntN(3) == 0 },
		"time":      func() { w.now = w.now.Add(20 * time.Second) },
	}
	for i, p := range w.workloads {
		events[fmt.Sprint("workload ", i)] = func() { w.renew(p) }
	}
	return events
}

// churn lets things happen in any order.
func (w *world) churn(n int) {
	w.t.Helper()
	for range n {
		events := w.events()
		names := slices.Sorted(maps.Keys(events))
		name := names[w.random.IntN(len(names))]
		events[name]()
		w.safe(name)
	}
}

// settle lets everything happen until nothing changes any more.
func (w *world) settle() {
	w.t.Helper()
	for range 9 {
		w.blind = false
		for w.step() {
			w.safe("a write")
			require.Less(w.t, len(w.writes), 1000, "it does not come to rest:\n%s", strings.Join(w.writes, "\n"))
			if w.done {
				return
			}
		}
		w.issue()
		w.takeUp()
		w.safe("istiod takes up")
		w.restartIstiod()
		w.safe("restart of istiod")
		for _, p := range w.workloads {
			w.renew(p)
			w.safe("renewal")
		}
		w.now = w.now.Add(20 * time.Second)
	}
	before := len(w.writes)
	for w.step() {
	}
	require.Len(w.t, w.writes, before, "it does not come to rest:\n%s", strings.Join(w.writes, "\n"))
}
