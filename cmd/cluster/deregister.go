package cluster

import (
	"context"

	"github.com/spf13/cobra"

	"github.com/meshctl/meshctl/cmd/cmdutil"
	"github.com/meshctl/meshctl/engine/registration"
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

const deregisterLong = `Deregisters a cluster and removes everything that meshctl created for it: the
objects on the cluster, meshctl's account and permissions there, and the
objects discovered in it. The resource types of
certificates.mesh.gloo.solo.io stay on the cluster: others may use them.

If a mesh of the cluster has certificates of a VirtualMesh, the command waits
until the agent of the cluster has given it back those that it had before. The
certificates would expire otherwise: nobody renews them any more.

Without --remote-context, the stored credential is used. It can remove the
objects that meshctl wrote, but not its own permissions; this requires your
permissions.

If the cluster cannot be reached or cleaned, the command fails and changes
nothing. With --force, the cluster is deregistered anyway. What remains on it
is printed as kubectl commands, and recorded in a ConfigMap until you
deregister the cluster again with --remote-context.`

func newCmdDeregister(f *cmdutil.Factory, runF func(context.Context, *DeregisterOptions) error) *cobra.Command {
	opts := &DeregisterOptions{Streams: f.Streams, management: management{factory: f}}
	cmd := &cobra.Command{
		Use:   "deregister NAME [--remote-context CONTEXT]",
		Short: "Deregister a cluster and remove what was created for it",
		Long:  deregisterLong,
		Example: `  # Deregister a cluster
  meshctl cluster deregister cluster-2 --remote-context cluster-2 --mgmt-context cluster-1

  # Deregister a cluster that no longer exists
  meshctl cluster deregister cluster-2 --force`,
		Args: cmdutil.Args("NAME"),
		RunE: func(cmd *cobra.Command, args []string) error {
			opts.Name = args[0]
			if err := registration.CheckName(opts.Name); err != nil {
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
	flags.StringVar(&opts.RemoteContext, "remote-context", "", "`context` of the cluster (default: the stored credential is used)")
	flags.StringVar(&opts.RemoteNamespace, "remote-namespace", "", "`namespace` of meshctl's ServiceAccount on the cluster (default: as registered)")
	flags.BoolVar(&opts.Force, "force", false, "deregister the cluster even if it cannot be cleaned")
	opts.completeContexts(cmd, "remote-context")
	return cmd
}

func deregisterRun(ctx context.Context, opts *DeregisterOptions) error {
	mgmt, err := opts.config()
	if err != nil {
		return err
	}
	options := registration.DeregisterOptions{
		Name: opts.Name, MgmtConfig: mgmt, MgmtContext: opts.context, MgmtNamespace: opts.namespace,
		RemoteContext: opts.RemoteContext, RemoteNamespace: opts.RemoteNamespace,
		Force: opts.Force, UserAgent: opts.userAgent(),
		Progress: func(text string) { say(opts.Streams, "%s", text) },
	}
	where := "stored credential"
	if opts.RemoteContext != "" {
		if options.RemoteConfig, err = opts.remote(opts.RemoteContext); err != nil {
			return err
		}
		where = options.RemoteConfig.Host
	}
	say(opts.Streams, "Deregistering cluster %s (%s) from the management plane in %s.", opts.Name, where, mgmt.Host)
	report, err := registration.Deregister(ctx, options)
	// What was done before an error is still to be known.
	if len(report.Changes) > 0 || err == nil {
		if printErr := PrintReport(opts.Streams, &opts.Output, &report); err == nil {
			err = printErr
		}
	}
	if err != nil {
		return typed(err)
	}
	if len(report.Leftovers) > 0 {
		say(opts.Streams, "Cluster %s is deregistered, but objects remain on it.", opts.Name)
		return nil
	}
	say(opts.Streams, "Cluster %s is deregistered; nothing remains on it.", opts.Name)
	return nil
}
