package agent

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/meshctl/meshctl/certs/vault/vaulttest"
	"github.com/meshctl/meshctl/engine/snapshot"
)

// TestVaultsThatTheRegistrationDidNotAllow: nothing is sent to a server that a VirtualMesh names, and that the
// administrator of the cluster did not allow. The error names the command that does.
func TestVaultsThatTheRegistrationDidNotAllow(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		server  string
		allowed []string
		want    []string
	}{
		"none":         {"https://vault.example.com:8200", nil, []string{"meshctl cluster register cluster-2 --remote-context CONTEXT --vault-server https://vault.example.com:8200"}},
		"another":      {"https://vault.example.com:8200", []string{"https://vault.example.com"}, []string{"--vault-server https://vault.example.com,https://vault.example.com:8200", "https://vault.example.com is allowed"}},
		"without TLS":  {"http://vault.example.com", []string{"https://vault.example.com"}, []string{"not encrypted", "use https"}},
		"another path": {"https://vault.example.com/mine", []string{"https://vault.example.com"}, []string{"--vault-server"}},
		"of a user":    {"https://a:b@vault.example.com", []string{"https://vault.example.com"}, []string{"is not the URL of a Vault"}},
		"for a shell":  {"https://vault.example.com/$(reboot)", nil, []string{"is not the URL of a Vault"}},
		"no URL":       {"https://vault.example.com; reboot", nil, []string{"is not the URL of a Vault"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			_, a, r := asking(t, newVaultRoot(t, "a"))
			r.certificate.Labels = map[string]string{snapshot.ClusterLabel: "cluster-2"}
			a.options.VaultServers = c.allowed
			r.spec.AgentCa.Vault.Server = c.server
			_, err := a.signedByVault(t.Context(), r)
			for _, want := range c.want {
				require.ErrorContains(t, err, want)
			}
			t.Log(err)
		})
	}
	for _, written := range []string{"URL", "URL/", "HTTP"} {
		server, a, r := asking(t, newVaultRoot(t, "a"))
		r.spec.AgentCa.Vault.Server = strings.NewReplacer("URL", server.URL, "HTTP", strings.Replace(server.URL, "http", "HTTP", 1)).Replace(written)
		_, err := a.signedByVault(t.Context(), r)
		require.NoError(t, err, "an administrator allowed it, without TLS")
	}
	server, a, r := asking(t, newVaultRoot(t, "a"))
	a.options.VaultServers = nil
	_, err := a.signedByVault(t.Context(), r)
	require.Error(t, err)
	assert.Empty(t, server.Requests(), "nothing was sent")
}

// TestVaultGetsNoTokenOfTheAPIServer: only one with the audience of Vault, and no other.
func TestVaultGetsNoTokenOfTheAPIServer(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct{ token, want string }{
		"the pod's own":  {vaulttest.APIServer, `has the audience "https://kubernetes.default.svc"`},
		"both":           {"e30.eyJhdWQiOlsidmF1bHQiLCJhcGkiXX0.c2ln", `has the audience "vault", "api"`},
		"one string":     {"e30.eyJhdWQiOiJ2YXVsdCJ9.c2ln", ""},
		"an older token": {"e30.e30.c2ln", "has no audience"},
		"no JWT":         {"hvs.token", "has no audience"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			server, a, r := asking(t, newVaultRoot(t, "a"))
			writeToken(t, a.options.tokens, "kubernetes.io/serviceaccount", vaulttest.APIServer)
			writeToken(t, a.options.tokens, vaultAccount, c.token)
			_, err := a.signedByVault(t.Context(), r)
			requests := strings.Join(server.Requests(), " ")
			if c.want == "" {
				assert.Contains(t, requests, "/login")
				return
			}
			require.ErrorContains(t, err, c.want)
			assert.NotContains(t, err.Error(), c.token)
			t.Log(err)
			assert.NotContains(t, requests, "/login")
		})
	}
}
