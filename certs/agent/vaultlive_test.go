package agent

import (
	"context"
	"encoding/json"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/meshctl/meshctl/certs/pki"
	"github.com/meshctl/meshctl/certs/vault/vaulttest"
	"github.com/meshctl/meshctl/demo/sandboxtest"
	"github.com/meshctl/meshctl/demo/waittest"
	certificatesv1 "github.com/meshctl/meshctl/engine/api/certificates/v1"
	commonv1 "github.com/meshctl/meshctl/engine/api/common/v1"
	"github.com/meshctl/meshctl/engine/kube"
	"github.com/meshctl/meshctl/engine/snapshot"
)

// askVault asks for a certificate of a root in a Vault, or changes what is asked for.
func (c *cluster) askVault(ca *certificatesv1.VaultCA, root *vaulttest.CA, more ...*vaulttest.CA) {
	c.t.Helper()
	bundle := pki.NewBundle(root.Root())
	for _, m := range more {
		bundle = bundle.Union(pki.NewBundle(m.Root()))
	}
	certificate := c.certificate()
	request := c.store.client.Put().AbsPath(kube.Path(snapshot.IssuedCertificate, c.own, testName, "")...)
	if certificate == nil {
		certificate = &certificatesv1.IssuedCertificate{}
		request = c.store.client.Post().AbsPath(kube.Path(snapshot.IssuedCertificate, c.own, "", "")...)
	}
	certificate.APIVersion, certificate.Kind = certificatesv1.GroupVersion.String(), "IssuedCertificate"
	certificate.Namespace, certificate.Name = c.own, testName
	certificate.Spec = certificatesv1.IssuedCertificateSpec{
		Hosts: []string{testHost}, IssuedCertificateSecret: &commonv1.ObjectRef{Namespace: c.mesh, Name: CACertsName},
		AgentCa: &certificatesv1.AgentCA{Vault: ca},
		Trust:   &certificatesv1.TrustRequest{Root: root.Fingerprint(), Bundle: string(bundle.PEM())},
	}
	err := request.Body(certificate).Do(c.t.Context()).Error()
	if apierrors.IsConflict(err) { // its status was written
		c.askVault(ca, root, more...)
		return
	}
	require.NoError(c.t, err)
}

// finishedWith waits until cacerts has a certificate of a root.
func (c *cluster) finishedWith(root *vaulttest.CA) {
	c.t.Helper()
	waittest.Until(c.t, "the mesh has a certificate of the root", func() bool {
		c.usable("in between")
		status := c.certificate().Status
		return status.State == certificatesv1.IssuedCertificateFinished && status.Trust.Issuer.Root == root.Fingerprint()
	})
}

// TestVaultLive runs the whole agent as a user who may do nothing but what the rules allow, with a Vault that is sealed
// first, then signs, and gets another root; by a token, and by a token of a service account.
func TestVaultLive(t *testing.T) {
	t.Parallel()
	waittest.SkipIfShort(t, "starts an API server")
	c := newCluster(t, "vault")
	first, second := newVaultRoot(t, "first"), newVaultRoot(t, "second")
	server := vaulttest.New(t, first)
	server.Instead(vaulttest.Sealed)
	c.createSecret(c.own, "vault-token", corev1.SecretTypeOpaque, map[string][]byte{"token": []byte(vaulttest.Token)})
	c.createSecret(c.own, "root-key", corev1.SecretTypeOpaque, map[string][]byte{"token": []byte("hush")})
	for _, account := range []string{"vault", "others"} {
		_, err := c.api.CoreV1().ServiceAccounts(c.own).Create(t.Context(), &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Name: account}}, metav1.CreateOptions{})
		require.NoError(t, err)
	}
	assert.Empty(t, slices.Concat(VaultTokenRules(), VaultAccountRules()), "no names, no rule")
	config := c.as(map[string][]rbacv1.PolicyRule{
		c.own: slices.Concat(OwnRules(testName), VaultTokenRules("vault-token"), VaultAccountRules("vault")), c.mesh: MeshRules(),
	})
	waittest.Until(t, "the API server knows the rules", func() bool {
		_, err := sandboxtest.Clientset(t, config).CoreV1().Secrets(c.mesh).Get(t.Context(), SelfSignedName, metav1.GetOptions{})
		return err == nil
	})
	options := c.options(config)
	options.Resync, options.VaultServers, options.VaultAudience = time.Second, []string{server.URL}, "our-vault"
	ctx, stop := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- Run(ctx, options) }()
	ca := &certificatesv1.VaultCA{Server: server.URL, CaPath: "pki/root/sign-intermediate", TokenSecretRef: &commonv1.ObjectRef{Name: "vault-token", Namespace: c.own}}
	c.askVault(ca, first)
	failed := func(want string) {
		t.Helper()
		waittest.Until(t, want, func() bool {
			status := c.certificate().Status
			return status.State == certificatesv1.IssuedCertificateFailed && strings.Contains(status.Error, want)
		})
		t.Log(c.certificate().Status.Error)
	}
	failed("failed to be signed by Vault: Vault " + server.URL + " does not read pki/cert/ca (503: Vault is sealed)")
	server.Instead(nil)
	c.finishedWith(first)

	// The root is exchanged: the bundle first, then the signer. Vault has only the new one.
	before := len(server.Requests())
	server.SetCA(second)
	c.askVault(ca, first, second)
	c.finishedWith(first)
	assert.Len(t, server.Requests(), before, "a certificate that is in use is not asked for again")
	login := &logins{}
	server.Instead(login.answer)
	ca.TokenSecretRef, ca.KubernetesAuth = nil, &certificatesv1.VaultKubernetesAuth{Role: vaulttest.Role, ServiceAccountRef: &commonv1.ObjectRef{Name: "others"}}
	c.askVault(ca, second, first)
	failed("ServiceAccount " + c.own + "/others: no token for Vault is made")
	ca.KubernetesAuth.ServiceAccountRef = &commonv1.ObjectRef{Name: "vault", Namespace: c.own}
	c.askVault(ca, second, first)
	c.finishedWith(second)

	ca.TokenSecretRef, ca.KubernetesAuth = &commonv1.ObjectRef{Name: "root-key"}, nil
	server.SetCA(first)
	c.askVault(ca, first, second)
	failed("Secret " + c.own + "/root-key cannot be read")
	stop()
	require.NoError(t, <-ended)
	c.assertNothingShown()
	for _, secret := range append(login.tokens(t), vaulttest.Token, "hush") {
		assert.NotContains(t, c.log.String(), secret)
		text, err := json.Marshal(c.certificate())
		require.NoError(t, err)
		assert.NotContains(t, string(text), secret)
	}
}

// logins answer all logins.
type logins struct {
	mu   sync.Mutex
	used []string
}

func (l *logins) answer(w http.ResponseWriter, r *http.Request) bool {
	if !strings.HasSuffix(r.URL.Path, "/login") {
		return false
	}
	var body struct{ JWT string }
	_ = json.NewDecoder(r.Body).Decode(&body)
	l.mu.Lock()
	defer l.mu.Unlock()
	l.used = append(l.used, body.JWT)
	_, _ = w.Write([]byte(`{"auth":{"client_token":"` + vaulttest.Token + `"}}`))
	return true
}

// tokens are those that were used, each a JSON Web Token.
func (l *logins) tokens(t *testing.T) []string {
	t.Helper()
	l.mu.Lock()
	defer l.mu.Unlock()
	require.NotEmpty(t, l.used)
	for _, token := range l.used {
		assert.Equal(t, []string{"our-vault"}, audiencesOf(token), "the API server does not take it")
	}
	return slices.Clone(l.used)
}
