package cluster

import (
	"context"
	"fmt"
	"time"

	"github.com/spf13/cobra"

	"github.com/meshctl/meshctl/cmd/cmdutil"
	registry "github.com/meshctl/meshctl/engine/cluster"
)

// RegisterOptions of the command.
type RegisterOptions struct {
	Streams *cmdutil.Streams
	Output  cmdutil.OutputFlag

	management
	Name             string
	RemoteContext    string
	RemoteNamespace  string
	ClusterDomain    string
	APIServerAddress string
	TokenTTL         time.Duration
}

const registerLong = `Makes a cluster known to the management plane. The management cluster is
registered like any other if workloads run in it.

All that could go wrong is looked for first: until names, servers, versions and
your permissions on both clusters are known to be right, nothing is written.
Registering again changes nothing, renews a credential that is due, and mends a
registration that is broken.

With --api-server-address, the management plane finds the cluster's API server
there instead of where your kubeconfig does. The server's certificate is verified
all the same: if it does not cover the address, it must cover the original name.`

func newCmdRegister(f *cmdutil.Factory, runF func(context.Context, *RegisterOptions) error) *cobra.Command {
	opts := &RegisterOptions{Streams: f.Streams, management: management{factory: f}}
	cmd := &cobra.Command{
		Use:   "register NAME --remote-context CONTEXT",
		Short: "Make a cluster known to the management plane",
		Long:  registerLong,
		Example: `  meshctl cluster register cluster-2 --remote-context cluster-2 --mgmt-context cluster-1

  # the API server has another address as seen from the management cluster
  meshctl cluster register cluster-2 --remote-context cluster-2 --api-server-address 10.0.0.7:6443`,
		Args: cmdutil.Args("NAME"),
		RunE: func(cmd *cobra.Command, args []string) error {
			opts.Name = args[0]
			if err := registry.CheckName(opts.Name); err != nil {
				return &cmdutil.FlagError{Err: err}
			}
			if opts.RemoteContext == "" {
				return cmdutil.FlagErrorf("say which cluster to register: --remote-context CONTEXT")
			}
			if runF != nil {
				return runF(cmd.Context(), opts)
			}
			return registerRun(cmd.Context(), opts)
		},
		ValidArgsFunction: cobra.NoFileCompletions,
	}
	opts.addFlags(cmd)
	opts.Output.AddFlag(cmd, cmdutil.FormatTable, cmdutil.FormatJSON, cmdutil.FormatYAML)
	flags := cmd.Flags()
	flags.StringVar(&opts.RemoteContext, "remote-context", "", "`context` of the cluster to register")
	flags.StringVar(&opts.RemoteNamespace, "remote-namespace", registry.DefaultNamespace, "`namespace` on the cluster for meshctl's account")
	flags.StringVar(&opts.ClusterDomain, "cluster-domain", "cluster.local", "DNS `suffix` of the cluster's Services")
	flags.StringVar(&opts.APIServerAddress, "api-server-address", "", "`HOST[:PORT]` at which the management plane finds the API server")
	flags.DurationVar(&opts.TokenTTL, "token-ttl", registry.DefaultTokenTTL, "`lifetime` of the credential; the API server may grant less")
	opts.completeContexts(cmd, "remote-context")
	return cmd
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
	// Which cluster it really is, said before anything is done to it.
	say(opts.Streams, "Registering %s, which is %s, with the management plane in %s.", opts.Name, remote.Host, mgmt.Host)
	report, err := registry.Register(ctx, registry.Options{
		Name: opts.Name, RemoteConfig: remote, MgmtConfig: mgmt,
		RemoteContext: opts.RemoteContext, MgmtContext: opts.context,
		MgmtNamespace: opts.namespace, RemoteNamespace: opts.RemoteNamespace,
		ClusterDomain: opts.ClusterDomain, APIServerAddress: opts.APIServerAddress, TokenTTL: opts.TokenTTL,
	})
	if err != nil {
		return typed(err)
	}
	if err := printReport(opts.Streams, &opts.Output, &report); err != nil {
		return err
	}
	if report.Unchanged() {
		say(opts.Streams, "Cluster %s was registered already; nothing has changed.", opts.Name)
		return nil
	}
	say(opts.Streams, "Cluster %s is registered; `meshctl cluster list` shows how it is.", opts.Name)
	return nil
}

// say tells a person what goes on. That it cannot be told must not end the work.
func say(s *cmdutil.Streams, format string, args ...any) {
	_, _ = fmt.Fprintln(s.Err, cmdutil.Clean(fmt.Sprintf(format, args...)))
}
