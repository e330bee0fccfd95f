package cluster

import (
	"context"
	"errors"
	"time"

	"github.com/spf13/cobra"
	"k8s.io/client-go/rest"

	"github.com/meshctl/meshctl/cmd/agent"
	"github.com/meshctl/meshctl/cmd/cmdutil"
	"github.com/meshctl/meshctl/cmd/interview"
	"github.com/meshctl/meshctl/engine/registration"
	"github.com/meshctl/meshctl/wizards"
)

// RegisterOptions of the command.
type RegisterOptions struct {
	Streams *cmdutil.Streams
	Output  cmdutil.OutputFlag
	// Prompter replaces the one that fits the streams.
	Prompter wizards.Prompter
	Flags    interview.Flags

	management
	Name             string
	RemoteContext    string
	RemoteNamespace  string
	ClusterDomain    string
	APIServerAddress string
	TokenTTL         time.Duration
	AgentImage       string
	VaultSecrets     []string
	VaultAccounts    []string
	// VaultServers is nil if the flag is not given.
	VaultServers  []string
	VaultAudience string
	Renew         bool
	// Relay has the cluster reached through its agent, which dials RelayServer.
	Relay       bool
	RelayServer string
	Wait        time.Duration
}

const registerLong = `Registers a cluster with the management plane. If workloads run in the
management cluster, register it too.

The command first checks names, servers, versions and your permissions on both
clusters; if a check fails, nothing is written. Registering a cluster again
repairs a broken registration, replaces its credential, and revokes all
credentials of before.

Settings of Istio are in ConfigMaps. The account may read those named istio and
istio-ca-root-cert, and all of them in namespaces that have a control plane now:
of revisions, and the one that istiod's SHARED_MESH_CONFIG names. If you install
a revision of Istio in another namespace later, register again.

On a terminal, the command asks for what is missing, and lists the contexts and
the clusters behind them.

With --api-server-address, the management plane uses this address of the API
server instead of the one in your kubeconfig. The certificate of the server is
still verified: it must be valid for this address or for the original one.

If serve runs in the management cluster, as after "meshctl install", its pods
use the address that is stored, and not you. An address of your own machine,
such as the 127.0.0.1 of kind and minikube, is refused then, and the error says
which one to use instead. The management cluster itself is stored as
https://kubernetes.default.svc. An --api-server-address that only the pods can
reach is accepted.

If serve runs, the command waits up to 20 seconds until serve says whether it
reaches the cluster. It fails with the reason of serve if not; the cluster stays
registered, and serve goes on trying.

The credential is a token with a limited lifetime (--token-ttl), which is kept
for renewals. "meshctl serve" renews it after a third of this time, so that
serve may be down for two thirds of it: 16 hours with the default of 24h, more
than four days with 168h. A longer lifetime makes an old copy of the Secret, as
in a backup, usable for longer. API servers accept 10m and more, and may grant
less, as their flag --service-account-max-token-expiration says; the command
says so then.

Who steals the Secret can renew the token as serve does, for no longer than this
lifetime each time: a ValidatingAdmissionPolicy refuses more. To revoke a
credential, register the cluster again. That makes another account for serve
and another credential, waits for a serve that runs to use it, and then removes
the accounts of before. The cluster refuses all their tokens within seconds,
also those that somebody made with a stolen one. The account of the agent is
made anew, too, and its Deployment gets other pods. If serve fails with the new
credential, the command fails, and nothing of serve's is revoked: correct what
it says, and run it again. "meshctl cluster deregister" revokes everything. If
the cluster does not enforce such policies, the command says so: tokens can then
be made for years, but end in the same way.

Names below the suffixes of VirtualMeshes ("global", unless they say otherwise)
lead to services in other clusters. A ValidatingAdmissionPolicy lets only
management planes write them in ServiceEntries, VirtualServices and
DestinationRules, and accounts that may use the resource federatedhosts of
networking.mesh.gloo.solo.io, as administrators of the cluster may. After a
VirtualMesh got another suffix, register its clusters again; "meshctl check" and
"meshctl version" name those that lack one.

For "meshctl agent", which gives the meshes of the cluster the certificates of
their VirtualMesh, the command creates an account with the permissions that it
needs, and a ValidatingAdmissionPolicy that limits what it may write. With
--agent-image, it also creates its Deployment, from an image of meshctl. It is
enough to say that once: later registrations keep the Deployment.

A VirtualMesh can name a HashiCorp Vault that signs. The agent sends nothing to
one that --vault-server does not name here, and nothing without TLS unless that
URL says http. It logs in with a token whose only audience is --vault-audience,
which the Vault role has to name; or with those credentials of its namespace
that --vault-token-secret and --vault-service-account name. Later registrations
keep all that; --vault-server= allows none any more.

With --relay, the cluster is not reached with a credential: its agent dials
--relay-server, by default the Service of "meshctl install --relay", and speaks
for it. The command makes a token for the agent, writes its Deployment, and
waits until it is connected. A cluster that has a credential keeps it until its
agent has a certificate, and moves then; without --relay, it moves back. See
"meshctl help relay", and "meshctl cluster invite" if you have no access to the
cluster.

With --renew, the command registers again, as they were, all clusters whose
credential is expired, refused or broken. It finds the contexts of the
kubeconfig that lead to them. It fails if such a cluster remains.`

func newCmdRegister(f *cmdutil.Factory, runF func(context.Context, *RegisterOptions) error) *cobra.Command {
	opts := &RegisterOptions{Streams: f.Streams, management: management{factory: f}}
	cmd := &cobra.Command{
		Use:   "register [NAME --remote-context CONTEXT | --renew]",
		Short: "Register a cluster with the management plane",
		Long:  registerLong,
		Example: `  # Choose the cluster interactively
  meshctl cluster register

  # Register a cluster
  meshctl cluster register cluster-2 --remote-context cluster-2 --mgmt-context cluster-1

  # Register again all clusters whose credential is expired or refused
  meshctl cluster register --renew --mgmt-context cluster-1

  # Revoke the credentials of a cluster: another registration replaces them
  meshctl cluster register cluster-2 --remote-context cluster-2 --mgmt-context cluster-1

  # Let VirtualMeshes have a Vault sign for the meshes of a cluster
  meshctl cluster register cluster-2 --remote-context cluster-2 --mgmt-context cluster-1 \
    --vault-server https://vault.example.com:8200

  # Have the agent of the cluster dial the management plane
  meshctl cluster register cluster-2 --relay --remote-context cluster-2

  # Register a cluster whose API server has another address inside the network
  meshctl cluster register cluster-2 --remote-context cluster-2 --api-server-address 10.0.0.7:6443`,
		Args: cmdutil.Args("[NAME]"),
		RunE: func(cmd *cobra.Command, args []string) error {
			if len(args) > 0 {
				opts.Name = args[0]
			}
			if err := opts.complete(cmd); err != nil {
				return err
			}
			if runF != nil {
				return runF(cmd.Context(), opts)
			}
			if opts.Renew {
				return renewRun(cmd.Context(), opts)
			}
			if opts.asks() {
				return opts.ask(cmd.Context())
			}
			return registerRun(cmd.Context(), opts)
		},
		ValidArgsFunction: cobra.NoFileCompletions,
	}
	opts.addFlags(cmd)
	opts.Output.AddFlag(cmd, cmdutil.FormatTable, cmdutil.FormatJSON, cmdutil.FormatYAML)
	opts.Output.Prints(
		cmdutil.Form{When: "without --renew", Value: registration.Report{}},
		cmdutil.Form{When: "with --renew", Value: []registration.Renewal{}},
	)
	flags := cmd.Flags()
	flags.StringVar(&opts.RemoteContext, "remote-context", "", "`context` of the cluster to register")
	flags.StringVar(&opts.RemoteNamespace, "remote-namespace", "", "`namespace` of meshctl's accounts on the cluster (default: as registered before, else gloo-mesh or, if that is a management plane's, gloo-mesh-agent)")
	flags.StringVar(&opts.ClusterDomain, "cluster-domain", "cluster.local", "DNS `suffix` of the cluster's Services")
	flags.StringVar(&opts.APIServerAddress, "api-server-address", "", "address of the API server as seen by the management plane, as `HOST[:PORT]`")
	flags.DurationVar(&opts.TokenTTL, "token-ttl", 0, "`lifetime` of the credential, such as 168h (default: as registered before, else 24h)")
	flags.StringVar(&opts.AgentImage, "agent-image", "", "`image` of meshctl with which to run its agent on the cluster (default: as registered before, else none)")
	flags.StringSliceVar(&opts.VaultSecrets, "vault-token-secret", nil, "`Secret` in the namespace of the agent with a token of Vault, which VirtualMeshes may name")
	flags.StringSliceVar(&opts.VaultAccounts, "vault-service-account", nil, "`ServiceAccount` in the namespace of the agent that logs in to Vault, which VirtualMeshes may name")
	flags.StringSliceVar(&opts.VaultServers, "vault-server", nil, "`URL` of a HashiCorp Vault that VirtualMeshes may name (default: as registered before, else none)")
	flags.StringVar(&opts.VaultAudience, "vault-audience", "", "`audience` of the tokens with which the agent logs in to Vault (default: as registered before, else vault)")
	flags.BoolVar(&opts.Relay, "relay", false, "have the cluster reached through its agent, which dials; see \"meshctl help relay\"")
	flags.StringVar(&opts.RelayServer, "relay-server", "", "`HOST:PORT` that the agent dials (default: the Service of \"meshctl install --relay\")")
	flags.DurationVar(&opts.Wait, "timeout", registration.DefaultRelayWait, "how long to wait for the agent, with --relay")
	flags.BoolVar(&opts.Renew, "renew", false, "register again all clusters whose credential is expired or refused")
	opts.Flags.AddFlags(cmd)
	opts.completeContexts(cmd, "remote-context")
	return cmd
}

// asks reports whether something is missing, and there is a terminal to ask on.
func (o *RegisterOptions) asks() bool {
	return (o.Name == "" || o.RemoteContext == "") && (o.Prompter != nil || interview.CanAsk(o.Streams))
}

// complete rejects invalid values, and missing ones where nobody can be asked.
func (o *RegisterOptions) complete(cmd *cobra.Command) error {
	if o.Renew {
		for _, flag := range []string{"remote-context", "remote-namespace", "cluster-domain", "api-server-address", "token-ttl", "agent-image", "vault-token-secret", "vault-service-account", "vault-server", "vault-audience", "relay", "relay-server", "timeout"} {
			if cmd.Flags().Changed(flag) {
				return cmdutil.FlagErrorf("--renew registers clusters as they were; it does not go with --%s", flag)
			}
		}
		if o.Name != "" {
			return cmdutil.FlagErrorf("--renew is for all clusters; it does not go with NAME")
		}
		return nil
	}
	if err := o.completeRelay(cmd); err != nil {
		return err
	}
	if cmd.Flags().Changed("vault-server") {
		var err error
		if o.VaultServers, err = agent.VaultServers(o.VaultServers); err != nil {
			return err
		}
	}
	if o.Name != "" {
		if err := registration.CheckName(o.Name); err != nil {
			return &cmdutil.FlagError{Err: err}
		}
	}
	switch {
	case o.asks():
		return nil
	case o.Name == "" && o.RemoteContext == "":
		return cmdutil.FlagErrorf("%s: NAME and --remote-context are required; usage: %s", cmd.CommandPath(), cmd.UseLine())
	case o.Name == "":
		return cmdutil.FlagErrorf("%s: NAME is required; usage: %s", cmd.CommandPath(), cmd.UseLine())
	case o.RemoteContext == "":
		return cmdutil.FlagErrorf("--remote-context is required; it selects the cluster to register")
	}
	return nil
}

func registerRun(ctx context.Context, opts *RegisterOptions) error {
	mgmt, err := opts.config()
	if err != nil {
		return err
	}
	remote, err := opts.remote(opts.RemoteContext)
	if err != nil {
		return err
	}
	// Show which server the name stands for before anything is done to it.
	say(opts.Streams, "Registering cluster %s (%s) with the management plane in %s.", opts.Name, remote.Host, mgmt.Host)
	options := opts.options(remote, mgmt)
	options.ServeWait = registration.DefaultRegisterWait
	if opts.Relay {
		options.ServeWait = opts.Wait
	}
	options.Progress = func(text string) { say(opts.Streams, "%s ...", text) }
	report, err := registration.Register(ctx, options)
	// What was written before an error is still to be known.
	var (
		unusable    *registration.ServeError
		unconnected *registration.RelayError
	)
	if err != nil && !errors.As(err, &unusable) && !errors.As(err, &unconnected) {
		return typed(err)
	}
	if printErr := PrintReport(opts.Streams, &opts.Output, &report); err == nil {
		err = printErr
	}
	if err != nil {
		return err
	}
	if opts.Relay && report.Serve == registration.ServeReaches {
		say(opts.Streams, "Cluster %s is reached through its agent.", opts.Name)
		return nil
	}
	done, next := "is registered", " Check its health with `meshctl cluster list`."
	if report.Revoked {
		done = "is registered again; the credentials of before are revoked"
	}
	if report.Serve == registration.ServeReaches {
		next = " meshctl serve reaches it."
	}
	say(opts.Streams, "Cluster %s %s.%s", opts.Name, done, next)
	return nil
}

func (o *RegisterOptions) options(remote, mgmt *rest.Config) registration.Options {
	return registration.Options{
		Name: o.Name, RemoteConfig: remote, MgmtConfig: mgmt,
		RemoteContext: o.RemoteContext, MgmtContext: o.context,
		MgmtNamespace: o.namespace, RemoteNamespace: o.RemoteNamespace,
		ClusterDomain: o.ClusterDomain, APIServerAddress: o.APIServerAddress, TokenTTL: o.TokenTTL,
		Agent: o.agent(), Relay: o.relay(),
	}
}

// agent is what the agent of the cluster gets.
func (o *RegisterOptions) agent() *registration.Agent {
	account := agent.Account(o.AgentImage)
	if o.Relay {
		account = agent.RelayAccount(o.AgentImage)
	}
	account.VaultServers, account.VaultAudience = o.VaultServers, o.VaultAudience
	account.MoreRules = agent.VaultRules(o.VaultSecrets, o.VaultAccounts)
	return account
}

func say(s *cmdutil.Streams, format string, args ...any) { cmdutil.Say(s, format, args...) }
