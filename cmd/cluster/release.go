package cluster

import (
	"context"

	"github.com/spf13/cobra"

	"github.com/meshctl/meshctl/cmd/cmdutil"
	"github.com/meshctl/meshctl/engine/registration"
)

// ReleaseOptions of the command.
type ReleaseOptions struct {
	Streams *cmdutil.Streams

	management
	Name string
	Code string
}

const releaseLong = `Lets "meshctl serve" delete objects in a cluster that are no longer wanted.

What a user deletes or edits takes effect at once. If objects are no longer
wanted for another reason, such as a control plane or a Service that is missing,
serve waits for a grace period. If many would go at once, or what denies
requests by default, it deletes nothing in that cluster and says so here, in
"meshctl cluster list", in the status of the KubernetesCluster, and by not being
ready: more often than not, something is missing by mistake.

Without --code, the command prints what is held back. With the code that it
prints, it lets exactly that be deleted.

The bounds are in the Settings: withdrawals.gracePeriod and
withdrawals.maxPercent.`

func newCmdRelease(f *cmdutil.Factory, runF func(context.Context, *ReleaseOptions) error) *cobra.Command {
	opts := &ReleaseOptions{Streams: f.Streams, management: management{factory: f}}
	cmd := &cobra.Command{
		Use:   "release NAME [--code CODE]",
		Short: "Let serve delete what no edit explains",
		Long:  releaseLong,
		Example: `  # Print what serve holds back in a cluster
  meshctl cluster release cluster-2

  # Let it be deleted
  meshctl cluster release cluster-2 --code 3f2a9c01`,
		Args: cmdutil.Args("NAME"),
		RunE: func(cmd *cobra.Command, args []string) error {
			opts.Name = args[0]
			if err := registration.CheckName(opts.Name); err != nil {
				return &cmdutil.FlagError{Err: err}
			}
			if runF != nil {
				return runF(cmd.Context(), opts)
			}
			return releaseRun(cmd.Context(), opts)
		},
		ValidArgsFunction: opts.completeClusters,
	}
	opts.addFlags(cmd)
	cmd.Flags().StringVar(&opts.Code, "code", "", "`code` of what may be deleted, as the command prints it without this flag")
	return cmd
}

func releaseRun(ctx context.Context, opts *ReleaseOptions) error {
	mgmt, err := opts.config()
	if err != nil {
		return err
	}
	held, err := registration.Release(ctx, registration.ReleaseOptions{
		Name: opts.Name, Code: opts.Code, MgmtConfig: mgmt, MgmtContext: opts.context, MgmtNamespace: opts.namespace,
	})
	switch {
	case err != nil:
		return typed(err)
	case held == "":
		say(opts.Streams, "Cluster %s: serve holds nothing back.", opts.Name)
	case opts.Code == "":
		say(opts.Streams, "Cluster %s: %s.", opts.Name, held)
	default:
		say(opts.Streams, "Cluster %s: released; serve deletes these objects.", opts.Name)
	}
	return nil
}
