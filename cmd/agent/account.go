package agent

import (
	"slices"

	rbacv1 "k8s.io/api/rbac/v1"

	"github.com/meshctl/meshctl/certs/agent"
	"github.com/meshctl/meshctl/certs/vault"
	"github.com/meshctl/meshctl/cmd/cmdutil"
	"github.com/meshctl/meshctl/engine/registration"
)

// Account is what the registration of a cluster gives its agent. Image is described there.
func Account(image string) *registration.Agent {
	return &registration.Agent{
		Image: image, OwnRules: agent.OwnRules, MeshRules: agent.MeshRules(), ClusterRules: agent.ClusterRules(), OwnerAnnotation: agent.OwnerAnnotation, FieldManager: agent.FieldManager, Limits: agent.Limits,
	}
}

// VaultServers are the URLs of Vaults in the one way in which they are compared. The error is a *cmdutil.FlagError.
func VaultServers(urls []string) ([]string, error) {
	out := make([]string, 0, len(urls))
	for _, url := range urls {
		server, err := vault.ParseServer(url)
		if err != nil {
			return nil, cmdutil.FlagErrorf("--vault-server %q: %w", url, err)
		}
		out = append(out, server)
	}
	slices.Sort(out)
	return slices.Compact(out), nil
}

// VaultRules are further rules, to use these Secrets and ServiceAccounts of the agent's namespace to log in to Vault.
func VaultRules(secrets, accounts []string) []rbacv1.PolicyRule {
	return slices.Concat(agent.VaultTokenRules(secrets...), agent.VaultAccountRules(accounts...))
}
