package vault

import (
	"context"
	"crypto/rand"
	"encoding/pem"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/meshctl/meshctl/certs/pki"
	"github.com/meshctl/meshctl/certs/vault/vaulttest"
	certificatesv1 "github.com/meshctl/meshctl/engine/api/certificates/v1"
)

const host = "spiffe://cluster.local/ns/istio-system/sa/istiod"

func root(t testing.TB, name string) *vaulttest.CA {
	t.Helper()
	return vaulttest.NewRoot(t, name, time.Now().Add(-time.Hour), 10000*time.Hour)
}

func client(t testing.TB, ca *certificatesv1.VaultCA) *Client {
	t.Helper()
	c, err := New(ca)
	require.NoError(t, err)
	t.Cleanup(func() { c.Close(context.Background()) })
	return c
}

func csr(t testing.TB) (pki.Key, []byte) {
	t.Helper()
	key, err := pki.NewRSAKey(rand.Reader, 2048)
	require.NoError(t, err)
	text, err := pki.NewRequest(rand.Reader, key, "Istio", []string{host, "other.example"})
	require.NoError(t, err)
	return key, text
}

// attempt does what an agent does.
func attempt(ctx context.Context, c *Client, csr []byte) ([]byte, error) {
	if _, err := c.Chain(ctx); err != nil {
		return nil, err
	}
	if err := c.Login(ctx, &certificatesv1.VaultKubernetesAuth{Role: vaulttest.Role}, vaulttest.ServiceAccount); err != nil {
		return nil, err
	}
	return c.Sign(ctx, Request{CSR: csr, CommonName: "mesh", Organization: "Istio, Inc", Identities: []string{host}, TTL: time.Hour})
}

// TestSigns: a certificate for exactly what was asked for, of the CA that was read, and no token is left behind.
func TestSigns(t *testing.T) {
	t.Parallel()
	top := root(t, "top")
	middle := top.NewCA(t, "middle", time.Now().Add(-time.Hour), 1000*time.Hour)
	server := vaulttest.NewTLS(t, root(t, "default"))
	server.AddIssuer("mesh", middle)
	ca := server.VaultCA()
	ca.CaPath = "/v1/pki/issuer/mesh/sign-intermediate"
	ca.CaBundle = pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: server.Certificate().Raw})
	c := client(t, ca)
	chain, err := c.Chain(t.Context())
	require.NoError(t, err)
	require.Len(t, chain, 2)
	assert.Equal(t, top.Fingerprint(), pki.Fingerprint(chain.Root()))
	key, request := csr(t)
	text, err := attempt(t.Context(), c, request)
	require.NoError(t, err)
	certs, err := pki.ReadCertificates(text)
	require.NoError(t, err)
	signed, err := pki.NewChain(certs[0], certs[1:]...)
	require.NoError(t, err)
	assert.Equal(t, pki.Fingerprint(chain.Root()), pki.Fingerprint(signed.Root()))
	require.NoError(t, pki.Verify(signed, pki.NewBundle(chain.Root()), time.Now(), pki.Want{Usage: pki.ForCA, Hosts: []string{host}, Key: key}))
	assert.Equal(t, host, signed[0].URIs[0].String())
	assert.Empty(t, signed[0].DNSNames, "neither the common name nor what the request has")
	assert.Equal(t, []string{"Istio, Inc"}, signed[0].Subject.Organization)
	assert.WithinDuration(t, time.Now().Add(time.Hour), signed[0].NotAfter, time.Minute)
	assert.True(t, signed[0].MaxPathLenZero)
	assert.Equal(t, 1, server.Tokens())
	c.Close(t.Context())
	assert.Zero(t, server.Tokens(), "the token of the login is revoked")
}

// TestFailures: each is one sentence without tokens, which says what to do, and is the same each time. What is said first is
// the object.
func TestFailures(t *testing.T) {
	t.Parallel()
	refuse := func(status int, messages ...string) func(http.ResponseWriter, *http.Request) bool {
		return func(w http.ResponseWriter, _ *http.Request) bool {
			vaulttest.Refuse(w, status, messages...)
			return true
		}
	}
	only := func(path string, then func(http.ResponseWriter, *http.Request) bool) func(http.ResponseWriter, *http.Request) bool {
		return func(w http.ResponseWriter, r *http.Request) bool {
			return strings.HasSuffix(r.URL.Path, path) && then(w, r)
		}
	}
	write := func(text string) func(http.ResponseWriter, *http.Request) bool {
		return func(w http.ResponseWriter, _ *http.Request) bool { _, _ = w.Write([]byte(text)); return true }
	}
	for name, c := range map[string]struct {
		instead func(http.ResponseWriter, *http.Request) bool
		want    []string
	}{
		"sealed":            {vaulttest.Sealed, []string{"Vault is sealed", "unseal Vault"}},
		"wrong role":        {only("/login", refuse(400, `invalid role name "mesh"`)), []string{"log in at auth/kubernetes/login", `invalid role name "mesh"`}},
		"not its account":   {only("/login", refuse(403, "permission denied")), []string{"403: permission denied", "check the role"}},
		"permission denied": {only("/sign-intermediate", refuse(403, "1 error occurred:\n\t* permission denied\n\n")), []string{"sign at pki/root/sign-intermediate", "1 error occurred: * permission denied"}},
		"no such mount":     {only("/cert/ca", refuse(404)), []string{"nothing at pki/cert/ca", "check caPath"}},
		"no CA":             {only("/cert/ca", refuse(400, "no default issuer currently configured")), []string{"no default issuer"}},
		"no certificate":    {write(`{"data":{"certificate":"","ca_chain":["",7]}}`), []string{"CA of mount pki"}},
		"no token":          {only("/login", write(`{"data":{"x":"y"}}`)), []string{"gives no token"}},
		"empty":             {only("/sign-intermediate", func(w http.ResponseWriter, _ *http.Request) bool { w.WriteHeader(http.StatusNoContent); return true }), []string{"nothing at"}},
		"garbage":           {write("<html>nginx"), []string{"something else than Vault"}},
		"cut off":           {write(`{"data":{"certifi`), []string{"something else than Vault"}},
		"not JSON, 502": {func(w http.ResponseWriter, _ *http.Request) bool {
			w.WriteHeader(http.StatusBadGateway)
			_, _ = w.Write([]byte("<b>x</b>"))
			return true
		}, []string{"(502)"}},
		"a private key": {only("/cert/ca", write(`{"data":{"certificate":"-----BEGIN PRIVATE KEY-----\nc2VjcmV0\n-----END PRIVATE KEY-----"}}`)), []string{"PRIVATE KEY"}},
		"huge":          {write(strings.Repeat(" ", maxAnswer+1) + "{}"), []string{"more than 256 KiB"}},
		"huge error": {func(w http.ResponseWriter, r *http.Request) bool {
			w.WriteHeader(http.StatusInternalServerError)
			return write(strings.Repeat("x", maxAnswer+1))(w, r)
		}, []string{"more than 256 KiB"}},
		"long error": {refuse(500, strings.Repeat("word ", 1000)), []string{"...);"}},
		"quotes tokens": {only("/sign-intermediate", func(w http.ResponseWriter, r *http.Request) bool {
			vaulttest.Refuse(w, 403, "bad token "+r.Header.Get("X-Vault-Token")+" of "+vaulttest.ServiceAccount)
			return true
		}), []string{"bad token (a token) of (a token)"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			server := vaulttest.New(t, root(t, "a"))
			server.Instead(c.instead)
			_, request := csr(t)
			var said []string
			for range 2 {
				_, err := attempt(t.Context(), client(t, server.VaultCA()), request)
				require.Error(t, err)
				said = append(said, err.Error())
			}
			t.Log(said[0])
			assert.Equal(t, said[0], said[1])
			assert.True(t, strings.HasPrefix(said[0], "Vault "+server.URL), said[0])
			assert.Contains(t, said[0], "; ", "it says what to do")
			assert.NotContains(t, said[0], "\n")
			assert.NotContains(t, said[0], vaulttest.ServiceAccount)
			assert.NotContains(t, said[0], "hvs.")
			assert.NotContains(t, said[0], "c2VjcmV0")
			assert.Less(t, len(said[0]), 500)
			for _, want := range c.want {
				assert.Contains(t, said[0], want)
			}
		})
	}
}

// TestRedirect: neither the token nor anything else goes to another address, whatever the status says.
func TestRedirect(t *testing.T) {
	t.Parallel()
	reached := make(chan string, 100)
	other := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) { reached <- r.URL.Path }))
	defer other.Close()
	for _, status := range []int{301, 302, 303, 307, 308} {
		for _, path := range []string{"/cert/ca", "/login", "/sign-intermediate"} {
			server := vaulttest.New(t, root(t, "a"))
			server.Instead(func(w http.ResponseWriter, r *http.Request) bool {
				if !strings.HasSuffix(r.URL.Path, path) {
					return false
				}
				http.Redirect(w, r, other.URL+"/v1/stolen", status)
				return true
			})
			_, request := csr(t)
			_, err := attempt(t.Context(), client(t, server.VaultCA()), request)
			require.ErrorContains(t, err, "redirects to \""+other.URL+"\", to which no token is sent; set server", "%d %s", status, path)
		}
	}
	assert.Empty(t, reached)
}

// TestSlow: who calls does not wait longer than it wants.
func TestSlow(t *testing.T) {
	t.Parallel()
	server := vaulttest.New(t, root(t, "a"))
	server.Instead(func(_ http.ResponseWriter, r *http.Request) bool { <-r.Context().Done(); return true })
	ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	_, err := client(t, server.VaultCA()).Chain(ctx)
	require.ErrorContains(t, err, "in time")
	server.CloseClientConnections()
}

// TestNobodyThere: what cannot be reached, or is not who it says.
func TestNobodyThere(t *testing.T) {
	t.Parallel()
	server := vaulttest.NewTLS(t, root(t, "a"))
	_, err := client(t, server.VaultCA()).Chain(t.Context())
	require.ErrorContains(t, err, "signed by an unknown authority; check server and caBundle")
	server.Close()
	_, err = client(t, server.VaultCA()).Chain(t.Context())
	require.ErrorContains(t, err, "refuses connections")
}

// TestIncompleteChain: it says which certificate Vault was not given.
func TestIncompleteChain(t *testing.T) {
	t.Parallel()
	middle := root(t, "top").NewCA(t, "middle", time.Now().Add(-time.Hour), time.Hour)
	server := vaulttest.New(t, middle.WithoutRoot())
	_, err := client(t, server.VaultCA()).Chain(t.Context())
	require.ErrorContains(t, err, `is signed by "CN=top"`)
	require.ErrorContains(t, err, "whose certificate is missing; add it to the chain of the CA in Vault")
}

// TestNew names what is wrong with a field.
func TestNew(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		change func(*certificatesv1.VaultCA)
		want   string
	}{
		"a role":       {func(ca *certificatesv1.VaultCA) { ca.CaPath = "pki/sign/role" }, "caPath"},
		"no mount":     {func(ca *certificatesv1.VaultCA) { ca.CaPath = "root/sign-intermediate" }, "caPath"},
		"no path":      {func(ca *certificatesv1.VaultCA) { ca.CaPath = "" }, "caPath"},
		"up":           {func(ca *certificatesv1.VaultCA) { ca.CaPath = "pki/../sys/root/sign-intermediate" }, "caPath"},
		"a query":      {func(ca *certificatesv1.VaultCA) { ca.CaPath = "pki?x=/root/sign-intermediate" }, "caPath"},
		"no URL":       {func(ca *certificatesv1.VaultCA) { ca.Server = "vault:8200" }, "server"},
		"no host":      {func(ca *certificatesv1.VaultCA) { ca.Server = "https://" }, "server"},
		"a password":   {func(ca *certificatesv1.VaultCA) { ca.Server = "https://u:hush@vault" }, "server"},
		"no PEM":       {func(ca *certificatesv1.VaultCA) { ca.CaBundle = []byte("PEM") }, "caBundle"},
		"nested mount": {func(ca *certificatesv1.VaultCA) { ca.CaPath = "v1/a/b/root/sign-intermediate/" }, ""},
	} {
		ca := &certificatesv1.VaultCA{Server: "https://vault.example.com:8200", CaPath: "pki/root/sign-intermediate"}
		c.change(ca)
		_, err := New(ca)
		if c.want == "" {
			require.NoError(t, err, name)
			continue
		}
		require.Error(t, err, name)
		assert.True(t, strings.HasPrefix(err.Error(), c.want), "%s: %v", name, err)
		assert.NotContains(t, err.Error(), "hush")
		assert.Contains(t, err.Error(), "set it to", name)
	}
}

// TestEnvironment: what Vault's own command line reads does not count.
func TestEnvironment(t *testing.T) { //nolint:paralleltest // it sets the environment
	for name, value := range map[string]string{
		"VAULT_ADDR": "http://127.0.0.1:1", "VAULT_AGENT_ADDR": "http://127.0.0.1:1", "VAULT_TOKEN": "hvs.mine", "VAULT_NAMESPACE": "mine",
		"VAULT_SKIP_VERIFY": "true", "VAULT_HEADERS": `{"Authorization":"mine"}`, "VAULT_HTTP_PROXY": "http://127.0.0.1:1", "VAULT_MAX_RETRIES": "9",
	} {
		t.Setenv(name, value)
	}
	server := vaulttest.New(t, root(t, "a"))
	var seen []http.Header
	server.Instead(func(_ http.ResponseWriter, r *http.Request) bool { seen = append(seen, r.Header.Clone()); return false })
	ca := server.VaultCA()
	ca.Namespace = "meshes/a"
	c := client(t, ca)
	_, err := c.Chain(t.Context())
	require.NoError(t, err)
	require.Len(t, seen, 2)
	for _, header := range seen {
		assert.Empty(t, header.Get("X-Vault-Token"))
		assert.Empty(t, header.Get("Authorization"))
		assert.Equal(t, "meshes/a", header.Get("X-Vault-Namespace"))
	}
	_, err = client(t, vaulttest.NewTLS(t, root(t, "a")).VaultCA()).Chain(t.Context())
	require.ErrorContains(t, err, "unknown authority", "VAULT_SKIP_VERIFY")
	server.Instead(vaulttest.Sealed)
	before := len(server.Requests())
	_, err = c.Chain(t.Context())
	require.Error(t, err)
	assert.Len(t, server.Requests(), before+1, "nothing is retried here")
}
