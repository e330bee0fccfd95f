package cluster

import (
	"context"
	"fmt"
	"io"
	"time"

	"github.com/spf13/cobra"

	"github.com/meshctl/meshctl/cmd/agent"
	"github.com/meshctl/meshctl/cmd/cmdutil"
	"github.com/meshctl/meshctl/engine/registration"
	"github.com/meshctl/meshctl/engine/snapshot"
)

// InviteOptions of the command.
type InviteOptions struct {
	Streams *cmdutil.Streams
	Now     func() time.Time

	management
	Name            string
	RemoteNamespace string
	ClusterDomain   string
	MeshNamespaces  []string
	AgentImage      string
	RelayServer     string
	TTL             time.Duration
	VaultSecrets    []string
	VaultAccounts   []string
	VaultServers    []string
	VaultAudience   string
	// OwnPKI: the agent has a certificate of the user's own PKI, and no token.
	OwnPKI bool
}

const inviteLong = `Registers a cluster that you have no access to. The command prints the manifests
of an agent, with a token; whoever administers the cluster applies them there.
The agent dials --relay-server, proves itself with the token, gets a certificate
of its own, and speaks for the cluster from then on. Nothing of the cluster's
credentials leaves it.

The token counts once, and until --ttl has passed. It is for this name, and for
no other hub: it names the hub's root certificate. Whoever has it can become the
cluster until then, so pass it on as you pass on passwords. Only the token that
was made last counts. An agent that has a certificate keeps it until another
token is used; "meshctl cluster revoke" ends it at once.

The agent gets its permissions in the namespaces of control planes by Roles
there. The manifests have those of --mesh-namespace, which have to exist. When
meshctl has discovered other meshes there, run the command again and have its
output applied again: it has the names of all of them.

The flags about HashiCorp Vault mean what they do in "meshctl cluster register".
What was allowed before is not known here: name all of it each time.

With --own-pki, there is no token: the agent takes the certificate that your own
PKI, such as cert-manager, writes into its Secret relay-client-tls-secret. See
"meshctl help relay" for the names in it, and for how serve knows its root.

There is no Helm chart for agents, and so there are no values for one. In a
chart of your own, take the manifests as templates, but for the two Secrets: the
token counts once.`

func newCmdInvite(f *cmdutil.Factory, runF func(context.Context, *InviteOptions) error) *cobra.Command {
	opts := &InviteOptions{Streams: f.Streams, Now: f.Now, management: management{factory: f}}
	cmd := &cobra.Command{
		Use:   "invite NAME",
		Short: "Print the manifests with which the agent of a cluster joins",
		Long:  inviteLong,
		Example: `  # On the management cluster: make the manifests
  meshctl cluster invite cluster-2 --relay-server relay.example.com:9900 > cluster-2.yaml

  # On the other cluster
  kubectl apply --server-side -f cluster-2.yaml`,
		Args: cmdutil.Args("NAME"),
		RunE: func(cmd *cobra.Command, args []string) error {
			opts.Name = args[0]
			if err := registration.CheckName(opts.Name); err != nil {
				return &cmdutil.FlagError{Err: err}
			}
			if opts.OwnPKI && cmd.Flags().Changed("ttl") {
				return cmdutil.FlagErrorf("--ttl is about a token, and with --own-pki there is none")
			}
			var err error
			if opts.VaultServers, err = agent.VaultServers(opts.VaultServers); err != nil {
				return err
			}
			if runF != nil {
				return runF(cmd.Context(), opts)
			}
			return inviteRun(cmd.Context(), opts)
		},
		ValidArgsFunction: opts.completeClusters,
	}
	opts.addFlags(cmd)
	flags := cmd.Flags()
	flags.StringVar(&opts.RelayServer, "relay-server", "", "`HOST:PORT` that the agent dials (default: the Service of \"meshctl install --relay\")")
	flags.DurationVar(&opts.TTL, "ttl", registration.DefaultInvitation, "how long the token counts")
	flags.StringVar(&opts.AgentImage, "agent-image", "", "`image` of meshctl for the agent (default: that of serve)")
	flags.StringVar(&opts.RemoteNamespace, "remote-namespace", "", "`namespace` of the agent on its cluster (default: as before, else gloo-mesh)")
	flags.StringVar(&opts.ClusterDomain, "cluster-domain", "cluster.local", "DNS `suffix` of the cluster's Services")
	flags.StringSliceVar(&opts.MeshNamespaces, "mesh-namespace", []string{registration.DefaultMeshNamespace}, "`namespace` of a control plane on the cluster; may be repeated")
	flags.BoolVar(&opts.OwnPKI, "own-pki", false, "make no token: your own PKI gives the agent its certificate")
	flags.StringSliceVar(&opts.VaultSecrets, "vault-token-secret", nil, "`Secret` in the namespace of the agent with a token of Vault, which VirtualMeshes may name")
	flags.StringSliceVar(&opts.VaultAccounts, "vault-service-account", nil, "`ServiceAccount` in the namespace of the agent that logs in to Vault, which VirtualMeshes may name")
	flags.StringSliceVar(&opts.VaultServers, "vault-server", nil, "`URL` of a HashiCorp Vault that VirtualMeshes may name")
	flags.StringVar(&opts.VaultAudience, "vault-audience", snapshot.VaultAudience, "`audience` of the tokens with which the agent logs in to Vault")
	return cmd
}

func inviteRun(ctx context.Context, opts *InviteOptions) error {
	mgmt, err := opts.config()
	if err != nil {
		return err
	}
	account := agent.RelayAccount(opts.AgentImage)
	account.VaultServers, account.VaultAudience = opts.VaultServers, opts.VaultAudience
	account.MoreRules = agent.VaultRules(opts.VaultSecrets, opts.VaultAccounts)
	invitation, err := registration.Invite(ctx, registration.InviteOptions{
		Name: opts.Name, MgmtConfig: mgmt, MgmtContext: opts.context, MgmtNamespace: opts.namespace, RemoteNamespace: opts.RemoteNamespace,
		ClusterDomain: opts.ClusterDomain, MeshNamespaces: opts.MeshNamespaces,
		Relay: &registration.Relay{Server: opts.RelayServer, Lasts: opts.TTL, OwnPKI: opts.OwnPKI, Store: agent.RelayStore}, Agent: account,
	})
	if err != nil {
		return typed(err)
	}
	for _, o := range invitation.Objects {
		if _, err := io.WriteString(opts.Streams.Out, "---\n"); err != nil {
			return fmt.Errorf("print manifests: %w", err)
		}
		if err := cmdutil.PrintYAML(opts.Streams.Out, o); err != nil {
			return err
		}
	}
	for _, note := range invitation.Report.Notes {
		say(opts.Streams, "Note: %s.", note)
	}
	if opts.OwnPKI {
		say(opts.Streams, "Cluster %s is registered. Have these manifests applied there with `kubectl apply --server-side -f FILE`, and a certificate for it put into Secret %s/%s; its root belongs into ca.crt of Secret %s/%s here.",
			opts.Name, invitation.Namespace, snapshot.RelayClientSecret, opts.namespace, snapshot.RelayClientRootSecret)
	} else {
		say(opts.Streams, "Cluster %s is registered. Have these manifests applied there until %s, with `kubectl apply --server-side -f FILE`: they have a token, which is a secret.",
			opts.Name, invitation.Until.UTC().Format(time.RFC3339))
	}
	say(opts.Streams, "The agent, in namespace %s, dials %s. See with `meshctl cluster list` when it is connected.", invitation.Namespace, invitation.Server)
	return nil
}
