package agent

import (
	"cmp"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"github.com/meshctl/meshctl/certs/vault"
	"github.com/meshctl/meshctl/engine/snapshot"
)

// mayUseVault refuses a server that the administrator of the cluster did not allow: who edits a VirtualMesh in any namespace
// names it, and gets what is sent there.
func (a *agent) mayUseVault(r *request) error {
	server, err := vault.ParseServer(r.spec.AgentCa.Vault.Server)
	if err != nil || slices.Contains(a.options.VaultServers, server) {
		return err
	}
	if !vault.Encrypted(server) {
		return fmt.Errorf("server %q is not used, because the connection is not encrypted: who can read it gets the token that logs in; use https", server)
	}
	allowed := "no Vault is allowed yet"
	switch n := len(a.options.VaultServers); {
	case n == 1:
		allowed = a.options.VaultServers[0] + " is allowed"
	case n > 1:
		allowed = "allowed are " + list(a.options.VaultServers)
	}
	return fmt.Errorf("server %q is not used, because the registration of this cluster does not allow it (%s); "+
		"its administrator allows it by: meshctl cluster register %s --remote-context CONTEXT --vault-server %s",
		server, allowed, cmp.Or(r.certificate.Labels[snapshot.ClusterLabel], "NAME"), strings.Join(append(slices.Clone(a.options.VaultServers), server), ","))
}

// vaultAudience is that of the tokens for Vault.
func (a *agent) vaultAudience() string {
	return cmp.Or(a.options.VaultAudience, snapshot.VaultAudience)
}

// forVaultOnly refuses a token that somebody else than Vault takes, too: Vault, or who has its place, could use it at the API
// server. The signature is not checked: the token is the agent's own.
func (a *agent) forVaultOnly(object, token string) (string, error) {
	has := audiencesOf(token)
	if slices.Equal(has, []string{a.vaultAudience()}) {
		return token, nil
	}
	said := "has no audience"
	if len(has) > 0 {
		quoted := make([]string, len(has))
		for i := range has {
			quoted[i] = fmt.Sprintf("%.80q", has[i])
		}
		said = "has the audience " + strings.Join(quoted, ", ")
	}
	return "", fmt.Errorf("%s %s; a token for Vault has the audience %q and no other: leave mountedSaPath out, or mount one that has it", object, said, a.vaultAudience())
}

// audiencesOf are those in the claims of a token (RFC 7519, 4.1.3); none if it is no JSON Web Token.
func audiencesOf(token string) []string {
	parts := strings.Split(token, ".")
	if len(parts) != 3 {
		return nil
	}
	payload, err := base64.RawURLEncoding.DecodeString(parts[1])
	if err != nil {
		return nil
	}
	var claims struct {
		Audience json.RawMessage `json:"aud"`
	}
	if json.Unmarshal(payload, &claims) != nil {
		return nil
	}
	var many []string
	var one string
	switch {
	case json.Unmarshal(claims.Audience, &many) == nil:
		return many
	case json.Unmarshal(claims.Audience, &one) == nil && one != "":
		return []string{one}
	}
	return nil
}
