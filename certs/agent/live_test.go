package agent

import (
	"bytes"
	"context"
	crand "crypto/rand"
	"encoding/base64"
	"encoding/json"
	"errors"
	"log/slog"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	apiextensions "k8s.io/apiextensions-apiserver/pkg/client/clientset/clientset"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"

	"github.com/meshctl/meshctl/certs/pki"
	"github.com/meshctl/meshctl/demo/sandboxtest"
	"github.com/meshctl/meshctl/demo/waittest"
	certificatesv1 "github.com/meshctl/meshctl/engine/api/certificates/v1"
	commonv1 "github.com/meshctl/meshctl/engine/api/common/v1"
	"github.com/meshctl/meshctl/engine/api/crds"
	"github.com/meshctl/meshctl/engine/kube"
	"github.com/meshctl/meshctl/engine/snapshot"
)

// cluster is a real API server with an agent's namespace and a mesh's, both of one test.
type cluster struct {
	t         *testing.T
	admin     *rest.Config
	api       *kubernetes.Clientset
	store     *store
	own, mesh string
	self, a   *pki.Authority
	verifier  *liveVerifier
	restarter *liveRestarter
	log       *lockedBuffer
}

type lockedBuffer struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (l *lockedBuffer) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.Write(p)
}

func (l *lockedBuffer) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.String()
}

// liveVerifier sees a mesh that takes up at once what cacerts has; without cacerts, it is self-signed.
type liveVerifier struct{ self *pki.Authority }

func (v *liveVerifier) Look(_ context.Context, target MeshTarget) (MeshState, error) {
	roots, signs := bundleOf(v.self), rootPrint(v.self)
	if len(target.Issuer) > 0 {
		roots, signs = target.Roots, pki.Fingerprint(target.Issuer.Root())
	}
	one := certificatesv1.TrustProgress{Done: 1, Total: 1}
	return MeshState{
		ControlPlane: one, Namespaces: one, Trusting: one, Presenting: one, Trusted: roots.Fingerprints(), Presented: []string{signs},
	}, nil
}

type liveRestarter struct {
	mu    sync.Mutex
	calls int
}

func (r *liveRestarter) Restart(ctx context.Context, d *certificatesv1.PodBounceDirective, _ MeshTarget, _ MeshState,
	save func(context.Context, *certificatesv1.PodBounceDirectiveStatus) error,
) (string, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.calls++
	return "", save(ctx, &certificatesv1.PodBounceDirectiveStatus{ObservedGeneration: d.Generation, PodsBounced: []certificatesv1.BouncedPodSet{{BouncedPods: []string{"istiod-1"}}}})
}

// Refresh: the mesh takes up at once what cacerts has.
func (*liveRestarter) Refresh(context.Context, MeshTarget, bool) error { return nil }

var installing sync.Mutex

// newCluster makes namespaces on the shared API server, and a mesh that signs with a root of its own.
func newCluster(t *testing.T, name string) *cluster {
	t.Helper()
	c := &cluster{t: t, admin: kube.Unlimited(sandboxtest.APIServer(t)), own: name + "-agent", mesh: name + "-istio", log: &lockedBuffer{}, restarter: &liveRestarter{}}
	c.api = sandboxtest.Clientset(t, c.admin)
	installing.Lock()
	defer installing.Unlock()
	definitions, err := apiextensions.NewForConfig(c.admin)
	require.NoError(t, err)
	all, err := crds.All()
	require.NoError(t, err)
	for _, crd := range all {
		if crd.Spec.Group != certificatesv1.GroupVersion.Group {
			continue
		}
		_, err := definitions.ApiextensionsV1().CustomResourceDefinitions().Create(t.Context(), crd, metav1.CreateOptions{})
		if !apierrors.IsAlreadyExists(err) {
			require.NoError(t, err)
		}
	}
	sandboxtest.MakeNamespace(t, c.admin, c.own)
	sandboxtest.MakeNamespace(t, c.admin, c.mesh)
	c.store, err = newStore(c.admin, c.own, ecKey)
	require.NoError(t, err)
	waittest.NoError(t, "the types are served", func() error {
		_, err := c.store.requests(t.Context())
		if err == nil {
			_, err = c.store.certificates(t.Context())
		}
		return err
	})
	c.self, c.a = liveRoot(t, "self"), liveRoot(t, "a")
	c.verifier = &liveVerifier{self: c.self}
	data, err := pki.CACerts{Authority: c.self, Roots: bundleOf(c.self)}.Data()
	require.NoError(t, err)
	c.createSecret(c.mesh, SelfSignedName, "istio.io/ca-root", data)
	return c
}

// liveRoot is valid now.
func liveRoot(t *testing.T, name string) *pki.Authority {
	t.Helper()
	key, err := ecKey(0)
	require.NoError(t, err)
	root, err := pki.NewRoot(crand.Reader, time.Now(), key, pki.Subject{Organization: "test", CommonName: name}, pki.Life{Lasts: 24 * time.Hour, Backdate: time.Hour})
	require.NoError(t, err)
	return root
}

func (c *cluster) createSecret(namespace, name string, kind corev1.SecretType, data map[string][]byte) {
	c.t.Helper()
	_, err := c.api.CoreV1().Secrets(namespace).Create(c.t.Context(), &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{Name: name}, Type: kind, Data: data}, metav1.CreateOptions{})
	require.NoError(c.t, err)
}

func (c *cluster) ask() {
	c.t.Helper()
	certificate := &certificatesv1.IssuedCertificate{
		TypeMeta:   metav1.TypeMeta{APIVersion: certificatesv1.GroupVersion.String(), Kind: "IssuedCertificate"},
		ObjectMeta: metav1.ObjectMeta{Namespace: c.own, Name: testName},
		Spec: certificatesv1.IssuedCertificateSpec{
			Hosts: []string{testHost}, IssuedCertificateSecret: &commonv1.ObjectRef{Namespace: c.mesh, Name: CACertsName},
			Trust: &certificatesv1.TrustRequest{Root: rootPrint(c.a), Bundle: string(bundleOf(c.a).PEM())},
		},
	}
	require.NoError(c.t, c.store.client.Post().AbsPath(kube.Path(snapshot.IssuedCertificate, c.own, "", "")...).Body(certificate).Do(c.t.Context()).Error())
}

func (c *cluster) withdraw() {
	c.t.Helper()
	err := c.store.client.Delete().AbsPath(kube.Path(snapshot.IssuedCertificate, c.own, testName, "")...).Do(c.t.Context()).Error()
	if !apierrors.IsNotFound(err) {
		require.NoError(c.t, err)
	}
}

// issue signs what is requested, as meshctl serve does.
func (c *cluster) issue() {
	c.t.Helper()
	requests, err := c.store.requests(c.t.Context())
	require.NoError(c.t, err)
	for _, request := range requests {
		if request.Status.ObservedGeneration == request.Generation {
			continue
		}
		chain := signed(c.t, c.a, request.Spec.CertificateSigningRequest, time.Now(), time.Hour)
		err := c.store.putStatus(c.t.Context(), snapshot.CertificateRequest, request, certificatesv1.CertificateRequestStatus{
			ObservedGeneration: request.Generation, State: certificatesv1.CertificateRequestFinished,
			SignedCertificate: chain[:1].PEM(), SigningRootCa: chain[1:].PEM(),
		})
		if !apierrors.IsConflict(err) && !apierrors.IsNotFound(err) { // the agent may have made another one
			require.NoError(c.t, err)
		}
	}
}

func (c *cluster) options(config *rest.Config) Options {
	return Options{
		Config: config, Namespace: c.own, Verifier: c.verifier, Restarter: c.restarter, Log: slog.New(slog.NewJSONHandler(c.log, &slog.HandlerOptions{Level: slog.LevelDebug})),
		Resync: 100 * time.Millisecond, newKey: ecKey, leaveAfter: -1, // at once
	}
}

// agent is a new process.
func (c *cluster) agent(config *rest.Config) *agent {
	c.t.Helper()
	a, err := newAgent(c.options(config), newMetrics())
	require.NoError(c.t, err)
	return a
}

func (c *cluster) secret(namespace, name string) *corev1.Secret {
	c.t.Helper()
	secret, err := c.store.secret(c.t.Context(), namespace, name)
	require.NoError(c.t, err)
	return secret
}

func (c *cluster) certificate() *certificatesv1.IssuedCertificate {
	c.t.Helper()
	certificates, err := c.store.certificates(c.t.Context())
	require.NoError(c.t, err)
	return certificates[testName]
}

// usable checks what must hold at every moment.
func (c *cluster) usable(when string) {
	c.t.Helper()
	if secret := c.secret(c.mesh, CACertsName); secret != nil {
		_, err := pki.ReadCACerts(secret.Data)
		require.NoError(c.t, err, when)
	}
}

// assertJoined checks the end of a join.
func (c *cluster) assertJoined(when string) {
	c.t.Helper()
	secret := c.secret(c.mesh, CACertsName)
	require.NotNil(c.t, secret, when)
	read, err := pki.ReadCACerts(secret.Data)
	require.NoError(c.t, err, when)
	require.Equal(c.t, IssuedType, secret.Type)
	require.Equal(c.t, rootPrint(c.a), rootPrint(read.Authority), when)
	require.True(c.t, read.Roots.Equal(bundleOf(c.a)), when)
	key, err := pki.ReadKey(c.secret(c.own, testName).Data[privateKey])
	require.NoError(c.t, err)
	require.NoError(c.t, key.Check(read.Authority.Chain()[0]), "%s: key and cacerts", when)
	status := c.certificate().Status
	require.Equal(c.t, certificatesv1.IssuedCertificateFinished, status.State, "%s: %+v", when, status)
}

func (c *cluster) assertLeft(when string) {
	c.t.Helper()
	require.Nil(c.t, c.secret(c.mesh, CACertsName), when)
	require.Nil(c.t, c.secret(c.mesh, BackupName), when)
	require.Nil(c.t, c.secret(c.own, testName), when)
	requests, err := c.store.requests(c.t.Context())
	require.NoError(c.t, err)
	require.Empty(c.t, requests, when)
}

// killer ends a process right before a write: that one and all later requests are not sent.
type killer struct {
	mu    sync.Mutex
	left  int
	fatal string
	base  http.RoundTripper
}

var errKilled = errors.New("killed")

func (k *killer) RoundTrip(r *http.Request) (*http.Response, error) {
	k.mu.Lock()
	if k.fatal == "" && r.Method != http.MethodGet {
		if k.left == 0 {
			k.fatal = r.Method + " " + r.URL.Path
		}
		k.left--
	}
	dead := k.fatal != ""
	k.mu.Unlock()
	if dead {
		if r.Body != nil {
			_ = r.Body.Close()
		}
		return nil, errKilled
	}
	return k.base.RoundTrip(r)
}

// atEachWrite runs a whole story with a process that is killed before each of its writes, one after the other.
func (c *cluster) atEachWrite(story func(a *agent, k *killer)) []string {
	c.t.Helper()
	var writes []string
	for n := 0; ; n++ {
		require.Less(c.t, n, 60, "this does not end: %v", writes)
		k := &killer{left: n}
		config := rest.CopyConfig(c.admin)
		config.Wrap(func(base http.RoundTripper) http.RoundTripper { k.base = base; return k })
		story(c.agent(config), k)
		if k.fatal == "" {
			return writes
		}
		writes = append(writes, k.fatal)
	}
}

// passes lets an agent work until it is at rest, or dead.
func (c *cluster) passes(a *agent, k *killer) {
	c.t.Helper()
	for range 6 {
		err := a.pass(c.t.Context())
		c.usable("in between")
		if k != nil && k.fatal != "" {
			require.ErrorIs(c.t, err, errKilled)
			return
		}
		require.NoError(c.t, err)
		c.issue()
	}
}

// TestDiesAtAnyWrite kills the agent right before each write of a join, and of a leave: another process ends as if it had
// not been killed, and cacerts can be used at every moment.
func TestDiesAtAnyWrite(t *testing.T) {
	t.Parallel()
	waittest.SkipIfShort(t, "starts an API server")
	c := newCluster(t, "killed")
	joins := c.atEachWrite(func(a *agent, k *killer) {
		c.ask()
		c.passes(a, k)
		c.passes(c.agent(c.admin), nil)
		c.assertJoined("killed before " + k.fatal)
		c.withdraw()
		c.passes(c.agent(c.admin), nil)
		c.assertLeft("killed before " + k.fatal)
	})
	leaves := c.atEachWrite(func(a *agent, k *killer) {
		c.ask()
		c.passes(c.agent(c.admin), nil)
		c.assertJoined("before it leaves")
		c.withdraw()
		c.passes(a, k)
		c.passes(c.agent(c.admin), nil)
		c.assertLeft("killed before " + k.fatal)
	})
	t.Logf("killed before %d writes of a join:\n%s\nand before %d of a leave:\n%s", len(joins), strings.Join(joins, "\n"), len(leaves), strings.Join(leaves, "\n"))
	assert.GreaterOrEqual(t, len(joins), 5)
	assert.GreaterOrEqual(t, len(leaves), 5)
	c.assertNothingShown()
}

// assertNothingShown searches logs and statuses for keys.
func (c *cluster) assertNothingShown() {
	c.t.Helper()
	text := c.log.String()
	if certificate := c.certificate(); certificate != nil {
		all, err := json.Marshal(certificate)
		require.NoError(c.t, err)
		text += string(all)
	}
	requests, err := c.store.requests(c.t.Context())
	require.NoError(c.t, err)
	all, err := json.Marshal(requests)
	require.NoError(c.t, err)
	text += string(all)
	require.NotEmpty(c.t, c.log.String(), "there is something to search")
	assert.NotContains(c.t, text, "PRIVATE KEY")
	assert.NotContains(c.t, text, base64.StdEncoding.EncodeToString([]byte("-----BEGIN PRIVATE"))[:20])
	for _, ref := range [][2]string{{c.own, testName}, {c.mesh, CACertsName}, {c.mesh, SelfSignedName}} {
		secret := c.secret(ref[0], ref[1])
		if secret == nil {
			continue
		}
		for _, key := range []string{privateKey, pki.CAKeyKey} {
			if pem := string(secret.Data[key]); pem != "" {
				line := strings.Split(pem, "\n")[1]
				assert.NotContains(c.t, text, line[:32])
			}
		}
	}
}
