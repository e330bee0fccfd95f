package issuer

import (
	"bytes"
	"context"
	"crypto/elliptic"
	"crypto/rand"
	"log/slog"
	"net/http"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/rest"

	"github.com/meshctl/meshctl/certs/pki"
	"github.com/meshctl/meshctl/demo/sandboxtest"
	"github.com/meshctl/meshctl/demo/waittest"
	certificatesv1 "github.com/meshctl/meshctl/engine/api/certificates/v1"
	"github.com/meshctl/meshctl/engine/registration/registrationtest"
	"github.com/meshctl/meshctl/engine/snapshot"
)

const (
	hostEast = "spiffe://east.example/ns/istio-system/sa/istiod"
	hostWest = "spiffe://west.example/ns/istio-system/sa/istiod"
)

var vmRef = snapshot.Ref{Kind: snapshot.VirtualMesh, Namespace: "gloo-mesh", Name: "vm"}

// keyring has the keys of one VirtualMesh.
type keyring struct {
	mu   sync.Mutex
	keys map[string]*pki.Authority
}

func (k *keyring) Authority(vm snapshot.Ref, fingerprint string) *pki.Authority {
	k.mu.Lock()
	defer k.mu.Unlock()
	if vm != vmRef {
		return nil
	}
	return k.keys[fingerprint]
}

func newKey(t testing.TB) pki.Key {
	t.Helper()
	key, err := pki.NewECDSAKey(rand.Reader, elliptic.P256())
	require.NoError(t, err)
	return key
}

// newRoot is a root and its key.
func newRoot(t testing.TB) (*pki.Authority, pki.Key) {
	t.Helper()
	key := newKey(t)
	root, err := pki.NewRoot(rand.Reader, time.Now(), key, pki.Subject{Organization: "root"}, pki.Life{Lasts: 3650 * 24 * time.Hour, Backdate: 2 * time.Hour})
	require.NoError(t, err)
	return root, key
}

func fingerprint(a *pki.Authority) string { return pki.Fingerprint(a.Chain().Root()) }

// request is a signing request for hosts, of a new key if none is given.
func request(t testing.TB, key pki.Key, hosts ...string) []byte {
	t.Helper()
	if key.IsZero() {
		key = newKey(t)
	}
	csr, err := pki.NewRequest(rand.Reader, key, "anything", hosts)
	require.NoError(t, err)
	return csr
}

func memberOf(cluster, namespace, name, root string, hosts ...string) *snapshot.MemberTrust {
	return &snapshot.MemberTrust{
		Ref:   snapshot.Ref{Kind: snapshot.IssuedCertificate, Cluster: cluster, Namespace: namespace, Name: name},
		Spec:  &certificatesv1.IssuedCertificateSpec{},
		Grant: &snapshot.CertificateGrant{Hosts: hosts, Days: 30, Root: root, Organization: "Istio"},
	}
}

// fixture is a cluster, on the shared API server, and a management plane without one.
type fixture struct {
	t         testing.TB
	namespace string
	objects   func(snapshot.Kind) dynamic.ResourceInterface
	roots     *keyring
	log       *sandboxtest.Buffer
	metrics   *prometheus.Registry
	changed   chan struct{}
	writes    atomic.Int64

	mu      sync.Mutex
	members []*snapshot.MemberTrust
	sync    snapshot.Sync
}

// newFixture has a member for mesh east in cluster east.
func newFixture(t testing.TB, root *pki.Authority) *fixture {
	t.Helper()
	admin := registrationtest.APIServer(t)
	ns, err := sandboxtest.Clientset(t, admin).CoreV1().Namespaces().Create(t.Context(), &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{GenerateName: "issuer-"}}, metav1.CreateOptions{})
	require.NoError(t, err)
	client, err := dynamic.NewForConfig(admin)
	require.NoError(t, err)
	f := &fixture{
		t: t, namespace: ns.Name, log: &sandboxtest.Buffer{}, metrics: prometheus.NewRegistry(), changed: make(chan struct{}, 1), sync: snapshot.Synced,
		roots: &keyring{keys: map[string]*pki.Authority{fingerprint(root): root}},
		objects: func(k snapshot.Kind) dynamic.ResourceInterface {
			return client.Resource(k.GroupVersionResource()).Namespace(ns.Name)
		},
		members: []*snapshot.MemberTrust{memberOf("east", ns.Name, "east", fingerprint(root), hostEast)},
	}
	// The account of serve on a registered cluster may not do more with requests.
	own := rest.AnonymousClientConfig(admin)
	own.BearerToken = sandboxtest.Token(t, admin, rbacv1.PolicyRule{
		APIGroups: []string{"certificates.mesh.gloo.solo.io"}, Resources: []string{"certificaterequests/status"}, Verbs: []string{"patch"},
	})
	own.Wrap(f.count)
	clusters := map[string]*rest.Config{"east": own}
	issuer := New(Options{
		Roots: f.roots, State: f.state, Clusters: func() map[string]*rest.Config { return clusters }, Metrics: f.metrics,
		Log: slog.New(slog.NewTextHandler(f.log, nil)),
	})
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan struct{})
	go func() { defer close(ended); issuer.Run(ctx, f.changed) }()
	t.Cleanup(func() {
		cancel()
		<-ended
		if t.Failed() {
			t.Log(f.log.String())
		}
	})
	return f
}

// counted counts the requests of the issuer.
type counted struct {
	http.RoundTripper
	count *atomic.Int64
}

func (c *counted) RoundTrip(r *http.Request) (*http.Response, error) {
	c.count.Add(1)
	return c.RoundTripper.RoundTrip(r)
}

func (f *fixture) count(base http.RoundTripper) http.RoundTripper { return &counted{base, &f.writes} }

// state is what is on the cluster now, and what is asked of it.
func (f *fixture) state() *snapshot.State {
	f.mu.Lock()
	defer f.mu.Unlock()
	c := &snapshot.Cluster{Name: "east", Sync: f.sync}
	list(f.objects(snapshot.CertificateRequest), &c.CertificateRequests)
	list(f.objects(snapshot.IssuedCertificate), &c.IssuedCertificates)
	return &snapshot.State{
		Input: &snapshot.Input{Clusters: []*snapshot.Cluster{c}},
		Plan:  &snapshot.Plan{VirtualMeshes: []*snapshot.VirtualMeshPlan{{Ref: vmRef, Trust: &snapshot.TrustPlan{Members: slices.Clone(f.members)}}}},
	}
}

func list[T any](from dynamic.ResourceInterface, to *[]*T) {
	found, err := from.List(context.Background(), metav1.ListOptions{})
	if err != nil {
		panic(err)
	}
	for _, item := range found.Items {
		o := new(T)
		if err := runtime.DefaultUnstructuredConverter.FromUnstructured(item.Object, o); err != nil {
			panic(err)
		}
		*to = append(*to, o)
	}
}

// change changes what is asked for, and has the issuer look again.
func (f *fixture) change(change func()) {
	f.mu.Lock()
	change()
	f.mu.Unlock()
	f.touch()
}

func (f *fixture) touch() {
	select {
	case f.changed <- struct{}{}:
	default:
	}
}

func (f *fixture) object(kind snapshot.Kind, name string, spec map[string]any) *unstructured.Unstructured {
	o := &unstructured.Unstructured{Object: map[string]any{"spec": spec}}
	o.SetGroupVersionKind(kind.Info().GroupVersionKind)
	o.SetNamespace(f.namespace)
	o.SetName(name)
	return o
}

// ask creates or replaces a request.
func (f *fixture) ask(name string, csr []byte) {
	f.t.Helper()
	data, err := runtime.DefaultUnstructuredConverter.ToUnstructured(&certificatesv1.CertificateRequest{Spec: certificatesv1.CertificateRequestSpec{CertificateSigningRequest: csr}})
	require.NoError(f.t, err)
	spec, ok := data["spec"].(map[string]any)
	require.True(f.t, ok)
	o := f.object(snapshot.CertificateRequest, name, spec)
	_, err = f.objects(snapshot.CertificateRequest).Apply(f.t.Context(), name, o, metav1.ApplyOptions{FieldManager: "agent", Force: true})
	require.NoError(f.t, err)
	f.touch()
}

// answer waits for the answer to the latest generation of a request.
func (f *fixture) answer(name string, state certificatesv1.CertificateRequestState, says string) certificatesv1.CertificateRequestStatus {
	f.t.Helper()
	var got certificatesv1.CertificateRequest
	waittest.Until(f.t, name+" is "+string(state)+" "+says, func() bool {
		f.touch()
		found, err := f.objects(snapshot.CertificateRequest).Get(f.t.Context(), name, metav1.GetOptions{})
		require.NoError(f.t, err)
		got = certificatesv1.CertificateRequest{}
		require.NoError(f.t, runtime.DefaultUnstructuredConverter.FromUnstructured(found.Object, &got))
		return got.Status.ObservedGeneration == got.Generation && got.Status.State == state && strings.Contains(got.Status.Error, says)
	})
	return got.Status
}

// TestARequestIsSigned as the Plan says: with its hosts, life and root.
func TestARequestIsSigned(t *testing.T) {
	t.Parallel()
	root, key := newRoot(t)
	f := newFixture(t, root)
	mine := newKey(t)
	f.ask("east", request(t, mine, hostEast))
	got := f.answer("east", certificatesv1.CertificateRequestFinished, "")
	certs, err := pki.ReadCertificates(got.SignedCertificate)
	require.NoError(t, err)
	require.Len(t, certs, 1)
	assert.Equal(t, root.Chain().PEM(), got.SigningRootCa)
	chain, err := pki.NewChain(certs[0], root.Chain()...)
	require.NoError(t, err)
	require.NoError(t, pki.Verify(chain, pki.NewBundle(root.Chain().Root()), time.Now(), pki.Want{Usage: pki.ForCA, Hosts: []string{hostEast}, Key: mine}))
	assert.Equal(t, []string{"Istio"}, certs[0].Subject.Organization)
	assert.InDelta(t, 30*24, time.Until(certs[0].NotAfter).Hours(), 1)
	assert.Empty(t, got.Error)

	writes := f.writes.Load()
	for range 20 {
		f.touch()
	}
	other, _ := newRoot(t)
	f.change(func() {
		f.roots.mu.Lock()
		defer f.roots.mu.Unlock()
		f.roots.keys[fingerprint(other)] = other
		f.members = []*snapshot.MemberTrust{memberOf("east", f.namespace, "east", fingerprint(other), hostEast)}
	})
	f.ask("unknown", request(t, pki.Key{}, hostEast))
	f.answer("unknown", certificatesv1.CertificateRequestFailed, "failed to find issued certificate matching certificate request")
	assert.Equal(t, got, f.answer("east", certificatesv1.CertificateRequestFinished, ""), "another root: the agent makes another request")
	assert.Equal(t, writes+1, f.writes.Load(), "nothing is written twice")

	f.ask("east", request(t, mine, hostEast))
	again := f.answer("east", certificatesv1.CertificateRequestFinished, "")
	assert.Equal(t, other.Chain().PEM(), again.SigningRootCa)
	pem, err := key.PEM()
	require.NoError(t, err)
	for line := range strings.Lines(string(pem)) {
		if !strings.HasPrefix(line, "-----") {
			assert.NotContains(t, f.log.String(), strings.TrimSpace(line))
		}
	}
}

// TestForgedRequestsAreRefused: whatever a cluster asks for, it gets what the Plan grants it, or
// nothing.
func TestForgedRequestsAreRefused(t *testing.T) {
	t.Parallel()
	root, key := newRoot(t)
	f := newFixture(t, root)
	f.members = append(f.members,
		memberOf("east", f.namespace, "huge", fingerprint(root), hostEast), memberOf("east", f.namespace, "garbage", fingerprint(root), hostEast),
		memberOf("east", f.namespace, "signer", fingerprint(root), hostEast), memberOf("east", f.namespace, "both", fingerprint(root), hostEast),
		memberOf("east", f.namespace, "rootless", strings.Repeat("0", 64), hostEast), memberOf("west", f.namespace, "west", fingerprint(root), hostWest))
	huge := append(bytes.Repeat([]byte("-"), 40<<10), request(t, pki.Key{}, hostEast)...)
	for name, c := range map[string]struct {
		csr  []byte
		says string
	}{
		"east":     {request(t, pki.Key{}, hostWest), "does not own"},
		"both":     {request(t, pki.Key{}, hostEast, hostWest), "does not own"},
		"west":     {request(t, pki.Key{}, hostWest), "no VirtualMesh asks for a certificate " + f.namespace + "/west in cluster east"},
		"garbage":  {[]byte("garbage"), "certificate signing request"},
		"huge":     {huge, "certificate signing request"},
		"signer":   {request(t, key, hostEast), "is for the signer's own key"},
		"rootless": {request(t, pki.Key{}, hostEast), "its private key is not on the management cluster"},
	} {
		f.ask(name, c.csr)
		got := f.answer(name, certificatesv1.CertificateRequestFailed, c.says)
		assert.Empty(t, got.SignedCertificate, name)
		assert.Less(t, len(got.Error), 1000)
		t.Log(got.Error)
	}
	waittest.Until(t, "seven refusals are counted", func() bool { // each after its answer was written
		refused := 0.0
		families, err := f.metrics.Gather()
		require.NoError(t, err)
		for _, family := range families {
			for _, m := range family.GetMetric() {
				if family.GetName() == "meshctl_certificate_requests_refused_total" {
					refused += m.GetCounter().GetValue()
				}
			}
		}
		return refused == 7
	})

	// An IssuedCertificate that the cluster's administrator wrote grants nothing; the request waits.
	_, err := f.objects(snapshot.IssuedCertificate).Create(t.Context(), f.object(snapshot.IssuedCertificate, "forged", map[string]any{"hosts": []any{hostWest}}), metav1.CreateOptions{})
	require.NoError(t, err)
	f.ask("forged", request(t, pki.Key{}, hostWest))
	f.ask("last", request(t, pki.Key{}, hostEast))
	f.answer("last", certificatesv1.CertificateRequestFailed, "no VirtualMesh asks")
	found, err := f.objects(snapshot.CertificateRequest).Get(t.Context(), "forged", metav1.GetOptions{})
	require.NoError(t, err)
	assert.NotContains(t, found.Object, "status")

	// What fails is signed as soon as it may be.
	f.change(func() {
		f.members[0] = memberOf("east", f.namespace, "east", fingerprint(root), hostWest)
	})
	f.answer("east", certificatesv1.CertificateRequestFinished, "")
}

// TestAFrozenClusterIsLeftAlone until it can be read again.
func TestAFrozenClusterIsLeftAlone(t *testing.T) {
	t.Parallel()
	root, _ := newRoot(t)
	f := newFixture(t, root)
	f.sync = snapshot.Stale
	f.ask("east", request(t, pki.Key{}, hostEast))
	assert.Empty(t, jobsOf(f.state().Input.Clusters[0], askedFor(f.state().Plan)))
	assert.Zero(t, f.writes.Load())
	f.change(func() { f.sync = snapshot.Synced })
	f.answer("east", certificatesv1.CertificateRequestFinished, "")
}

// TestWhatAVaultSignsIsNotAnswered: not even with the key of the root, as long as the Plan says so.
func TestWhatAVaultSignsIsNotAnswered(t *testing.T) {
	t.Parallel()
	member := memberOf("east", "gloo-mesh", "east", "00", hostEast)
	request := &certificatesv1.CertificateRequest{ObjectMeta: metav1.ObjectMeta{Namespace: "gloo-mesh", Name: "east", Generation: 1}}
	jobs := func() []job {
		plan := &snapshot.Plan{VirtualMeshes: []*snapshot.VirtualMeshPlan{{Ref: vmRef, Trust: &snapshot.TrustPlan{Members: []*snapshot.MemberTrust{member}}}}}
		return jobsOf(&snapshot.Cluster{Name: "east", Sync: snapshot.Synced, CertificateRequests: []*certificatesv1.CertificateRequest{request}}, askedFor(plan))
	}
	require.Len(t, jobs(), 1)
	member.Grant = nil
	assert.Empty(t, jobs())
	request.Status = certificatesv1.CertificateRequestStatus{ObservedGeneration: 1, State: certificatesv1.CertificateRequestFailed}
	assert.Empty(t, jobs())
}

// TestUsage: a request for gateways gets no CA, and no other gets a leaf, whatever is requested.
func TestUsage(t *testing.T) {
	t.Parallel()
	root, _ := newRoot(t)
	roots := &keyring{keys: map[string]*pki.Authority{fingerprint(root): root}}
	key := newKey(t)
	for usage, fits := range map[certificatesv1.TrustUsage]pki.Usage{
		certificatesv1.TrustUsageCA: pki.ForCA, certificatesv1.TrustUsageGateway: pki.ForWorkload, "Other": pki.AnyUsage,
	} {
		member := memberOf("east", "gloo-mesh", "east-gateways", fingerprint(root), hostEast)
		member.Grant.Usage = usage
		asked := &certificatesv1.CertificateRequest{Spec: certificatesv1.CertificateRequestSpec{CertificateSigningRequest: request(t, key, hostEast)}}
		j := &job{ref: member.Ref, request: asked, virtualMesh: vmRef, grant: member.Grant}
		status, refused := j.answer(roots, time.Now())
		if fits == pki.AnyUsage {
			assert.Equal(t, pki.Unsupported, refused)
			assert.Empty(t, status.SignedCertificate)
			assert.Contains(t, status.Error, `usage "Other" cannot be signed`)
			continue
		}
		require.Empty(t, refused, status.Error)
		certs, err := pki.ReadCertificates(status.SignedCertificate)
		require.NoError(t, err)
		chain, err := pki.NewChain(certs[0], root.Chain()...)
		require.NoError(t, err)
		for _, want := range []pki.Usage{pki.ForCA, pki.ForWorkload} {
			err := pki.Verify(chain, pki.NewBundle(root.Chain().Root()), time.Now(), pki.Want{Usage: want, Hosts: []string{hostEast}, Key: key})
			if want == fits {
				assert.NoError(t, err)
				continue
			}
			assert.Contains(t, []pki.Reason{pki.NotCA, pki.WrongUsage}, pki.ReasonOf(err), "%q", usage)
		}
	}
}
