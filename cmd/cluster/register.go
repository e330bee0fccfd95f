package cluster

import (
	"context"
	"fmt"
	"time"

	"github.com/spf13/cobra"
	"k8s.io/client-go/rest"

	"github.com/meshctl/meshctl/cmd/cmdutil"
	"github.com/meshctl/meshctl/cmd/interview"
	registry "github.com/meshctl/meshctl/engine/cluster"
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
}

const registerLong = `Makes a cluster known to the management plane. The management cluster is
registered like any other if workloads run in it.

All that could go wrong is looked for first: until names, servers, versions and
your permissions on both clusters are known to be right, nothing is written.
Registering again changes nothing, renews a credential that is due, and mends a
registration that is broken.

On a terminal, what is left out is asked for: contexts are offered with what they
lead to.

With --api-server-address, the management plane finds the cluster's API server
there instead of where your kubeconfig does. The server's certificate is verified
all the same: if it does not cover the address, it must cover the original name.`

func newCmdRegister(f *cmdutil.Factory, runF func(context.Context, *RegisterOptions) error) *cobra.Command {
	opts := &RegisterOptions{Streams: f.Streams, management: management{factory: f}}
	cmd := &cobra.Command{
		Use:   "register [NAME --remote-context CONTEXT]",
		Short: "Make a cluster known to the management plane",
		Long:  registerLong,
		Example: `  # asks
  meshctl cluster register

  meshctl cluster register cluster-2 --remote-context cluster-2 --mgmt-context cluster-1

  # the API server has another address as seen from the management cluster
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
			if opts.asks() {
				return opts.ask(cmd.Context())
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
	opts.Flags.AddFlags(cmd)
	opts.completeContexts(cmd, "remote-context")
	return cmd
}

// asks reports whether something is left to ask, and somebody to be asked.
func (o *RegisterOptions) asks() bool {
	return (o.Name == "" || o.RemoteContext == "") && (o.Prompter != nil || interview.Possible(o.Streams))
}

// complete refuses what cannot be, and what is missing where nobody can be asked.
func (o *RegisterOptions) complete(cmd *cobra.Command) error {
	if o.Name != "" {
		if err := registry.CheckName(o.Name); err != nil {
			return &cmdutil.FlagError{Err: err}
		}
	}
	switch {
	case o.asks():
		return nil
	case o.Name == "" && o.RemoteContext == "":
		return cmdutil.FlagErrorf("%s: say which NAME, and --remote-context CONTEXT; usage: %s", cmd.CommandPath(), cmd.UseLine())
	case o.Name == "":
		return cmdutil.FlagErrorf("%s: say which NAME; usage: %s", cmd.CommandPath(), cmd.UseLine())
	case o.RemoteContext == "":
		return cmdutil.FlagErrorf("say which cluster to register: --remote-context CONTEXT")
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
	// Which cluster it really is, said before anything is done to it.
	say(opts.Streams, "Registering %s, which is %s, with the management plane in %s.", opts.Name, remote.Host, mgmt.Host)
	report, err := registry.Register(ctx, opts.options(remote, mgmt))
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

func (o *RegisterOptions) options(remote, mgmt *rest.Config) registry.Options {
	return registry.Options{
		Name: o.Name, RemoteConfig: remote, MgmtConfig: mgmt,
		RemoteContext: o.RemoteContext, MgmtContext: o.context,
		MgmtNamespace: o.namespace, RemoteNamespace: o.RemoteNamespace,
		ClusterDomain: o.ClusterDomain, APIServerAddress: o.APIServerAddress, TokenTTL: o.TokenTTL,
	}
}

// say tells a person what goes on. That it cannot be told must not end the work.
func say(s *cmdutil.Streams, format string, args ...any) {
	_, _ = fmt.Fprintln(s.Err, cmdutil.Clean(fmt.Sprintf(format, args...)))
}
