package cluster

import (
	"context"

	"github.com/spf13/cobra"

	"github.com/meshctl/meshctl/cmd/cmdutil"
	registry "github.com/meshctl/meshctl/engine/cluster"
)

// DeregisterOptions of the command.
type DeregisterOptions struct {
	Streams *cmdutil.Streams
	Output  cmdutil.OutputFlag

	management
	Name            string
	RemoteContext   string
	RemoteNamespace string
	Force           bool
}

const deregisterLong = `Forgets a cluster, and removes all that meshctl made for it: what it wrote to the
cluster, its account and rights there, and what it discovered.

Without --remote-context the stored credential is used. It may remove what
meshctl wrote, but not its own rights, which takes your permissions.

A cluster that cannot be reached or cleaned is an error that changes nothing.
With --force it is forgotten all the same; what stays on it is printed as kubectl
commands and kept in a ConfigMap, until deregistering it again with
--remote-context has cleaned it.`

func newCmdDeregister(f *cmdutil.Factory, runF func(context.Context, *DeregisterOptions) error) *cobra.Command {
	opts := &DeregisterOptions{Streams: f.Streams, management: management{factory: f}}
	cmd := &cobra.Command{
		Use:   "deregister NAME --remote-context CONTEXT",
		Short: "Forget a cluster and remove all that was made for it",
		Long:  deregisterLong,
		Example: `  meshctl cluster deregister cluster-2 --remote-context cluster-2 --mgmt-context cluster-1

  # the cluster is gone for good
  meshctl cluster deregister cluster-2 --force`,
		Args: cmdutil.Args("NAME"),
		RunE: func(cmd *cobra.Command, args []string) error {
			opts.Name = args[0]
			if err := registry.CheckName(opts.Name); err != nil {
				return &cmdutil.FlagError{Err: err}
			}
			if runF != nil {
				return runF(cmd.Context(), opts)
			}
			return deregisterRun(cmd.Context(), opts)
		},
		ValidArgsFunction: cobra.NoFileCompletions,
	}
	opts.addFlags(cmd)
	opts.Output.AddFlag(cmd, cmdutil.FormatTable, cmdutil.FormatJSON, cmdutil.FormatYAML)
	flags := cmd.Flags()
	flags.StringVar(&opts.RemoteContext, "remote-context", "", "`context` of the cluster (default: use the stored credential)")
	flags.StringVar(&opts.RemoteNamespace, "remote-namespace", "", "`namespace` on the cluster of meshctl's account (default: as registered)")
	flags.BoolVar(&opts.Force, "force", false, "forget the cluster though it cannot be cleaned")
	opts.completeContexts(cmd, "remote-context")
	return cmd
}

func deregisterRun(ctx context.Context, opts *DeregisterOptions) error {
	mgmt, err := opts.config()
	if err != nil {
		return err
	}
	options := registry.DeregisterOptions{
		Name: opts.Name, MgmtConfig: mgmt, MgmtContext: opts.context, MgmtNamespace: opts.namespace,
		RemoteContext: opts.RemoteContext, RemoteNamespace: opts.RemoteNamespace,
		Force: opts.Force, UserAgent: opts.userAgent(),
	}
	where := "with its stored credential"
	if opts.RemoteContext != "" {
		if options.RemoteConfig, err = opts.remote(opts.RemoteContext); err != nil {
			return err
		}
		where = "which is " + options.RemoteConfig.Host
	}
	say(opts.Streams, "Deregistering %s, %s, from the management plane in %s.", opts.Name, where, mgmt.Host)
	report, err := registry.Deregister(ctx, options)
	// What was done before an error is still to be known.
	if len(report.Changes) > 0 || err == nil {
		if printErr := printReport(opts.Streams, &opts.Output, &report); err == nil {
			err = printErr
		}
	}
	if err != nil {
		return typed(err)
	}
	if len(report.Leftovers) > 0 {
		say(opts.Streams, "Cluster %s is deregistered, but not clean.", opts.Name)
		return nil
	}
	say(opts.Streams, "Cluster %s is deregistered; nothing of it is left.", opts.Name)
	return nil
}
