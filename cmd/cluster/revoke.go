package cluster

import (
	"context"

	"github.com/spf13/cobra"

	"github.com/meshctl/meshctl/cmd/agent"
	"github.com/meshctl/meshctl/cmd/cmdutil"
	"github.com/meshctl/meshctl/engine/registration"
)

// RevokeOptions of the command.
type RevokeOptions struct {
	Streams *cmdutil.Streams

	management
	Name string
}

const revokeLong = `Ends the certificate of a cluster's agent, all that it had before, and a token
that was not used yet. If serve runs, the agent is disconnected within a second,
and no replica takes it any more. The cluster stays registered, and frozen:
nothing is removed from it or from other clusters.

Another token lets the agent come back: "meshctl cluster register --relay", or
"meshctl cluster invite". The agent takes the token without a restart.

The credential of a cluster without an agent is revoked by registering the
cluster again.`

func newCmdRevoke(f *cmdutil.Factory, runF func(context.Context, *RevokeOptions) error) *cobra.Command {
	opts := &RevokeOptions{Streams: f.Streams, management: management{factory: f}}
	cmd := &cobra.Command{
		Use:   "revoke NAME",
		Short: "End the certificates of a cluster's agent",
		Long:  revokeLong,
		Example: `  # Disconnect the agent of a cluster, whose certificate may have been copied
  meshctl cluster revoke cluster-2 --mgmt-context cluster-1`,
		Args: cmdutil.Args("NAME"),
		RunE: func(cmd *cobra.Command, args []string) error {
			opts.Name = args[0]
			if err := registration.CheckName(opts.Name); err != nil {
				return &cmdutil.FlagError{Err: err}
			}
			if runF != nil {
				return runF(cmd.Context(), opts)
			}
			return revokeRun(cmd.Context(), opts)
		},
		ValidArgsFunction: opts.completeClusters,
	}
	opts.addFlags(cmd)
	return cmd
}

func revokeRun(ctx context.Context, opts *RevokeOptions) error {
	mgmt, err := opts.config()
	if err != nil {
		return err
	}
	err = registration.Revoke(ctx, registration.RevokeOptions{
		Name: opts.Name, MgmtConfig: mgmt, MgmtContext: opts.context, MgmtNamespace: opts.namespace, Store: agent.RelayStore,
	})
	if err != nil {
		return typed(err)
	}
	say(opts.Streams, "No certificate of the agent of cluster %s counts any more. Let it come back with `meshctl cluster register %s --relay`, or with `meshctl cluster invite %s`.", opts.Name, opts.Name, opts.Name)
	return nil
}
