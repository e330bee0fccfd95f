package agent

import (
	"context"
	"crypto/x509"
	"log/slog"
	"net"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"

	"github.com/meshctl/meshctl/certs/pki"
	"github.com/meshctl/meshctl/certs/vault/vaulttest"
	certificatesv1 "github.com/meshctl/meshctl/engine/api/certificates/v1"
	commonv1 "github.com/meshctl/meshctl/engine/api/common/v1"
)

// vaultRoot is a root in a Vault that is valid now.
func newVaultRoot(t testing.TB, name string) *vaulttest.CA {
	t.Helper()
	return vaulttest.NewRoot(t, name, time.Now().Add(-time.Hour), 10000*time.Hour)
}

// asking is an agent with a request that a Vault is to sign.
func asking(t *testing.T, ca *vaulttest.CA, change ...func(*certificatesv1.IssuedCertificateSpec)) (*vaulttest.Server, *agent, *request) {
	t.Helper()
	server := vaulttest.New(t, ca)
	w := newWorld(t, 1)
	w.now = time.Now()
	w.vault = server.VaultCA()
	w.certificate = &certificatesv1.IssuedCertificate{ObjectMeta: metav1.ObjectMeta{Namespace: ownNS, Name: testName, Generation: 1}}
	w.certificate.Spec = certificatesv1.IssuedCertificateSpec{
		Hosts: []string{testHost}, IssuedCertificateSecret: &commonv1.ObjectRef{Namespace: meshNS, Name: CACertsName},
		AgentCa: &certificatesv1.AgentCA{Vault: w.vault},
		Trust:   &certificatesv1.TrustRequest{Root: ca.Fingerprint(), Bundle: string(pki.Chain{ca.Root()}.PEM())},
	}
	for _, c := range change {
		c(&w.certificate.Spec)
	}
	for w.step() {
	}
	require.NotNil(t, w.sign, "%+v", w.certificate.Status)
	tokens := t.TempDir()
	writeToken(t, tokens, vaultAccount, vaulttest.ServiceAccount)
	a, err := newAgent(Options{
		Config: &rest.Config{Host: "http://127.0.0.1:1"}, Namespace: ownNS, VaultServers: []string{server.URL}, Log: slog.New(slog.DiscardHandler), tokens: tokens, newKey: ecKey,
	}, newMetrics())
	require.NoError(t, err)
	t.Cleanup(a.vaults.stop)
	return server, a, w.sign
}

func writeToken(t *testing.T, tokens, folder, text string) {
	t.Helper()
	require.NoError(t, os.MkdirAll(filepath.Join(tokens, folder), 0o700))
	require.NoError(t, os.WriteFile(filepath.Join(tokens, folder, tokenKey), []byte(text+"\n"), 0o600))
}

// TestVaultSigns: what a Vault signs is a certificate that the agent puts to use, and does not outlive the CA.
func TestVaultSigns(t *testing.T) {
	t.Parallel()
	top := newVaultRoot(t, "top")
	middle := top.NewCA(t, "middle", time.Now().Add(-time.Hour), 100*24*time.Hour)
	for name, c := range map[string]struct {
		days  uint32
		lasts time.Duration
	}{"its own life": {30, 30 * 24 * time.Hour}, "cut": {365, 100*24*time.Hour - time.Hour}} {
		server, a, r := asking(t, middle, func(s *certificatesv1.IssuedCertificateSpec) {
			s.Hosts = append(s.Hosts, "istiod.istio-system.svc")
			s.CertOptions = &certificatesv1.CommonCertOptions{TtlDays: c.days, OrgName: "a, b"}
		})
		chain, err := a.signedByVault(t.Context(), r)
		require.NoError(t, err, name)
		require.Len(t, chain, 3, name)
		assert.Equal(t, top.Fingerprint(), pki.Fingerprint(chain.Root()), name)
		assert.WithinDuration(t, time.Now().Add(c.lasts), chain[0].NotAfter, 3*time.Minute, name)
		assert.Equal(t, []string{"a, b"}, chain[0].Subject.Organization)
		assert.Equal(t, []string{"istiod.istio-system.svc"}, chain[0].DNSNames)
		assert.Zero(t, server.Tokens(), "revoked")
		_, err = r.verified(chain[:2].PEM())
		require.NoError(t, err, "it is used as an answer of meshctl serve is")
	}
}

// TestVaultAnswersWrongly: nothing of it becomes an answer.
func TestVaultAnswersWrongly(t *testing.T) {
	t.Parallel()
	other := newVaultRoot(t, "other")
	template := func(change func(*x509.Certificate)) func(*vaulttest.Server) {
		return func(s *vaulttest.Server) {
			s.Change(func(sign *vaulttest.Signing) { change(sign.Template) })
		}
	}
	evil, err := url.Parse("spiffe://cluster.local/ns/other/sa/other")
	require.NoError(t, err)
	for name, c := range map[string]struct {
		change func(*vaulttest.Server)
		want   string
		// asked: a certificate was signed in vain.
		asked bool
	}{
		"another root": {func(s *vaulttest.Server) { s.SetCA(other) }, "after a change in Vault that takes until all members trust the new root", false},
		"another root at the last moment": {func(s *vaulttest.Server) {
			s.Change(func(sign *vaulttest.Signing) { sign.By = other })
		}, "which is not trusted", true},
		"another root of the same name": {func(s *vaulttest.Server) {
			same := newVaultRoot(t, "a")
			s.Change(func(sign *vaulttest.Signing) { sign.By = same })
		}, "has the same name, but another key", true},
		"somebody else's key": {func(s *vaulttest.Server) {
			s.Change(func(sign *vaulttest.Signing) { sign.Public = other.Certificate.PublicKey })
		}, "is not for this private key", true},
		"no CA":               {template(func(c *x509.Certificate) { c.IsCA, c.MaxPathLen, c.MaxPathLenZero = false, -1, false }), "is not a CA", true},
		"may not sign":        {template(func(c *x509.Certificate) { c.KeyUsage = x509.KeyUsageDigitalSignature }), "may not sign certificates", true},
		"expired":             {template(func(c *x509.Certificate) { c.NotAfter = time.Now().Add(-time.Second) }), "expired at", true},
		"no host":             {template(func(c *x509.Certificate) { c.URIs = nil }), "is that of none", true},
		"another host":        {template(func(c *x509.Certificate) { c.URIs = []*url.URL{evil} }), "is that of", true},
		"more hosts":          {template(func(c *x509.Certificate) { c.URIs = append(c.URIs, evil) }), "it is for the hosts", true},
		"a DNS name":          {template(func(c *x509.Certificate) { c.DNSNames = []string{testName} }), "it is for the hosts", true},
		"an IP address":       {template(func(c *x509.Certificate) { c.IPAddresses = []net.IP{net.IPv4(127, 0, 0, 1)} }), "it is for the hosts", true},
		"an e-mail address":   {template(func(c *x509.Certificate) { c.EmailAddresses = []string{"a@b.example"} }), "it is for the hosts", true},
		"sealed":              {func(s *vaulttest.Server) { s.Instead(vaulttest.Sealed) }, "unseal Vault", false},
		"sealed when asked":   {sealedAt("/sign-intermediate"), "unseal Vault", true},
		"sealed at the login": {sealedAt("/login"), "unseal Vault", false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			server, a, r := asking(t, newVaultRoot(t, "a"))
			c.change(server)
			chain, err := a.signedByVault(t.Context(), r)
			require.ErrorContains(t, err, c.want)
			t.Log(err)
			assert.Nil(t, chain)
			assert.Contains(t, err.Error(), server.URL)
			assert.Equal(t, c.asked, strings.Contains(strings.Join(server.Requests(), " "), "sign-intermediate"))
			assert.Zero(t, server.Tokens(), "revoked")
		})
	}
}

func sealedAt(path string) func(*vaulttest.Server) {
	return func(s *vaulttest.Server) {
		s.Instead(func(w http.ResponseWriter, r *http.Request) bool {
			return strings.HasSuffix(r.URL.Path, path) && vaulttest.Sealed(w, r)
		})
	}
}

// TestVaultWithAnExpiredCA: nobody logs in, and nothing is signed.
func TestVaultWithAnExpiredCA(t *testing.T) {
	t.Parallel()
	top := newVaultRoot(t, "top")
	for name, ca := range map[string]*vaulttest.CA{
		"the root":        vaulttest.NewRoot(t, "old", time.Now().Add(-2*time.Hour), time.Hour),
		"one below it":    top.NewCA(t, "old", time.Now().Add(-2*time.Hour), time.Hour),
		"in a few blinks": top.NewCA(t, "old", time.Now().Add(-time.Hour), time.Hour+notOutlive/2),
		"not yet":         top.NewCA(t, "new", time.Now().Add(time.Hour), time.Hour),
	} {
		server, a, r := asking(t, ca)
		_, err := a.signedByVault(t.Context(), r)
		require.ErrorContains(t, err, "the CA of Vault "+server.URL, name)
		t.Log(err)
		for _, request := range server.Requests() {
			assert.True(t, strings.HasPrefix(request, "GET "), "%s: %s", name, request)
		}
	}
}

// TestVaultWithAFastClock: a certificate that is not valid yet is an answer, which is used later.
func TestVaultWithAFastClock(t *testing.T) {
	t.Parallel()
	server, a, r := asking(t, newVaultRoot(t, "a"))
	server.Change(func(s *vaulttest.Signing) { s.Template.NotBefore = time.Now().Add(time.Minute) })
	chain, err := a.signedByVault(t.Context(), r)
	require.NoError(t, err)
	_, err = r.verified(chain[:1].PEM())
	assert.Equal(t, pki.NotYetValid, pki.ReasonOf(err))
}

// TestCredentials: which token is used, and that no other file or Secret can be asked for.
func TestCredentials(t *testing.T) {
	t.Parallel()
	const secret = "not for Vault"
	for name, c := range map[string]struct {
		auth certificatesv1.VaultKubernetesAuth
		ca   *certificatesv1.VaultCA
		want string
	}{
		"its own":         {},
		"another folder":  {auth: certificatesv1.VaultKubernetesAuth{MountedSaPath: "TOKENS/other"}},
		"another key":     {auth: certificatesv1.VaultKubernetesAuth{MountedSaPath: "TOKENS/other/", SecretTokenKey: "jwt"}},
		"missing":         {auth: certificatesv1.VaultKubernetesAuth{SecretTokenKey: "none"}, want: "mounts it into the Pod"},
		"elsewhere":       {auth: certificatesv1.VaultKubernetesAuth{MountedSaPath: "/etc", SecretTokenKey: "hostname"}, want: "is not below"},
		"up":              {auth: certificatesv1.VaultKubernetesAuth{MountedSaPath: "TOKENS/../outside"}, want: "is not below"},
		"up by the key":   {auth: certificatesv1.VaultKubernetesAuth{SecretTokenKey: "../../../outside/token"}, want: "is not below"},
		"a link out":      {auth: certificatesv1.VaultKubernetesAuth{MountedSaPath: "TOKENS/link"}, want: "mounts it into the Pod"},
		"no token":        {auth: certificatesv1.VaultKubernetesAuth{MountedSaPath: "TOKENS/broken"}, want: "has no token"},
		"a huge one":      {auth: certificatesv1.VaultKubernetesAuth{MountedSaPath: "TOKENS/huge"}, want: "has no token"},
		"others' account": {auth: certificatesv1.VaultKubernetesAuth{ServiceAccountRef: &commonv1.ObjectRef{Name: "a", Namespace: "istio-system"}}, want: "only what is in its own"},
		"others' Secret":  {ca: &certificatesv1.VaultCA{TokenSecretRef: &commonv1.ObjectRef{Name: "a", Namespace: "istio-system"}}, want: "only what is in its own"},
		"no login":        {ca: &certificatesv1.VaultCA{}, want: "how to log in"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			server, a, r := asking(t, newVaultRoot(t, "a"))
			tokens := a.options.tokens
			outside := filepath.Join(filepath.Dir(tokens), "outside")
			writeToken(t, filepath.Dir(tokens), "outside", secret)
			t.Cleanup(func() { _ = os.RemoveAll(outside) })
			writeToken(t, tokens, "other", vaulttest.ServiceAccount)
			writeToken(t, tokens, "broken", "two\nlines")
			writeToken(t, tokens, "huge", strings.Repeat("x", maxToken+1))
			require.NoError(t, os.Symlink("token", filepath.Join(tokens, "other", "jwt")))
			require.NoError(t, os.Symlink(outside, filepath.Join(tokens, "link")))
			ca := r.spec.AgentCa.Vault
			c.auth.Role, c.auth.MountedSaPath = vaulttest.Role, strings.Replace(c.auth.MountedSaPath, "TOKENS", tokens, 1)
			ca.KubernetesAuth = &c.auth
			if c.ca != nil {
				ca.KubernetesAuth, ca.TokenSecretRef = nil, c.ca.TokenSecretRef
			}
			_, err := a.signedByVault(t.Context(), r)
			if c.want == "" {
				require.NoError(t, err)
				return
			}
			require.ErrorContains(t, err, c.want)
			assert.NotContains(t, err.Error(), secret)
			for _, request := range server.Requests() {
				assert.True(t, strings.HasPrefix(request, "GET "), "%s", request)
			}
		})
	}
}

// TestVaultIsNotAskedAllTheTime: one attempt of a mesh at a time, and pauses that grow to a minute while it fails; what is
// asked for anew is asked at once.
func TestVaultIsNotAskedAllTheTime(t *testing.T) {
	t.Parallel()
	v := newVaultCalls()
	now := testStart
	attempts := 0
	var longest time.Duration
	last := now
	for ; now.Before(testStart.Add(time.Hour)); now = now.Add(time.Second) {
		call, ok := v.begin("a", "x", now)
		if !ok {
			continue
		}
		_, again := v.begin("a", "x", now.Add(time.Hour))
		require.False(t, again, "one at a time")
		attempts++
		longest, last = max(longest, now.Sub(last)), now
		v.end(call, now, true)
	}
	assert.InDelta(t, 60, attempts, 15)
	assert.GreaterOrEqual(t, longest, vaultLast)
	assert.LessOrEqual(t, longest, vaultLast*5/4+time.Second)
	_, ok := v.begin("a", "y", last)
	assert.True(t, ok, "another request")
	_, ok = v.begin("b", "x", last)
	assert.True(t, ok, "another mesh")
}

// TestStopsWithTheAgent: an attempt that hangs ends with the agent, and says nothing about Vault.
func TestStopsWithTheAgent(t *testing.T) {
	t.Parallel()
	server, a, r := asking(t, newVaultRoot(t, "a"))
	hangs := make(chan struct{}, 10)
	server.Instead(func(_ http.ResponseWriter, r *http.Request) bool {
		hangs <- struct{}{}
		<-r.Context().Done()
		return true
	})
	a.signByVault(r)
	<-hangs
	a.signByVault(r)
	a.vaults.stop()
	assert.Empty(t, hangs, "it was asked once")
	require.ErrorIs(t, a.askVault(a.vaults.ctx, r), context.Canceled)
}
