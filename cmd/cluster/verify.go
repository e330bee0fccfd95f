package cluster

import (
	"context"
	"fmt"
	"io"
	"strconv"
	"time"

	"github.com/spf13/cobra"

	"github.com/meshctl/meshctl/cmd/cmdutil"
	multiclusterv1alpha1 "github.com/meshctl/meshctl/engine/api/multicluster/v1alpha1"
	"github.com/meshctl/meshctl/engine/registration"
	"github.com/meshctl/meshctl/engine/snapshot"
)

// VerifyOptions of the command.
type VerifyOptions struct {
	Streams *cmdutil.Streams
	Output  cmdutil.OutputFlag

	management
	Name    string
	Timeout time.Duration
}

const verifyLong = `Compares the objects of a cluster that is reached through its agent, now, kind
by kind: as "meshctl serve" has them, as the agent reports them, and as the
cluster has them, listed for this. They are the same, but for what is on its
way: what differs for several seconds is a bug in meshctl, or something between
them that loses what it should pass on.

Of each object that differs, the beginning of a hash is shown for each side, at
most ten of a kind. Of kinds that the agent may not list, and of what it knows
of objects that serve writes ("written:"), only serve and the agent are
compared.

The command asks by an annotation of the KubernetesCluster, and serve answers in
its status.`

func newCmdVerify(f *cmdutil.Factory, runF func(context.Context, *VerifyOptions) error) *cobra.Command {
	opts := &VerifyOptions{Streams: f.Streams, management: management{factory: f}}
	cmd := &cobra.Command{
		Use:   "verify NAME",
		Short: "Compare what an agent reports with its cluster",
		Long:  verifyLong,
		Example: `  # Compare what serve, the agent and the cluster have
  meshctl cluster verify cluster-2`,
		Args: cmdutil.Args("NAME"),
		RunE: func(cmd *cobra.Command, args []string) error {
			opts.Name = args[0]
			if err := registration.CheckName(opts.Name); err != nil {
				return &cmdutil.FlagError{Err: err}
			}
			if opts.Timeout <= 0 {
				return cmdutil.FlagErrorf("--timeout must be greater than 0")
			}
			if runF != nil {
				return runF(cmd.Context(), opts)
			}
			return verifyRun(cmd.Context(), opts)
		},
		ValidArgsFunction: opts.completeClusters,
	}
	opts.addFlags(cmd)
	opts.Output.AddFlag(cmd, cmdutil.FormatTable, cmdutil.FormatJSON, cmdutil.FormatYAML)
	opts.Output.Prints(cmdutil.Form{Value: multiclusterv1alpha1.Verified{}})
	cmdutil.ExitCodes(cmd, cmdutil.Exit{Code: cmdutil.ExitFindings, Means: "something differs"})
	cmd.Flags().DurationVar(&opts.Timeout, "timeout", registration.DefaultVerifyWait, "how long to wait for the answer")
	return cmd
}

func verifyRun(ctx context.Context, opts *VerifyOptions) error {
	mgmt, err := opts.config()
	if err != nil {
		return err
	}
	progress := cmdutil.NewProgress(opts.Streams)
	progress.Start("Comparing")
	found, err := registration.Verify(ctx, registration.VerifyOptions{
		Name: opts.Name, MgmtConfig: mgmt, MgmtContext: opts.context, MgmtNamespace: opts.namespace, Wait: opts.Timeout,
	})
	progress.End(err)
	if err != nil {
		return typed(err)
	}
	err = opts.Output.Print(opts.Streams.Out, found, func(out io.Writer) error {
		say(opts.Streams, "%s", verifiedText(opts.Name, found))
		if len(found.Differences) == 0 {
			return nil
		}
		return verifyTable(found).Print(out)
	})
	if err == nil && len(found.Differences) > 0 {
		return cmdutil.ErrFindings
	}
	return err
}

// verifiedText is what was compared, as a sentence.
func verifiedText(name string, v *multiclusterv1alpha1.Verified) string {
	text := fmt.Sprintf("Cluster %s: %s of %s were compared; ", name, snapshot.Count(int(v.Objects), "object"), snapshot.Count(int(v.Kinds), "kind"))
	if v.UnlistedKinds > 0 {
		text += fmt.Sprintf("%s could not be listed in the cluster; ", snapshot.Count(int(v.UnlistedKinds), "kind"))
	}
	if len(v.Differences) == 0 {
		return text + "all sides have the same."
	}
	return text + snapshot.Count(len(v.Differences), "kind") + " differ. Please report this; restarting the agent compares everything again."
}

func verifyTable(v *multiclusterv1alpha1.Verified) *cmdutil.Table {
	table := &cmdutil.Table{Header: []string{"KIND", "OBJECT", "HUB", "AGENT", "CLUSTER"}}
	for _, d := range v.Differences {
		cluster := "not listed"
		if d.Cluster != nil {
			cluster = strconv.FormatInt(*d.Cluster, 10)
		}
		all := "all"
		if d.More > 0 {
			all = fmt.Sprintf("all; %d more differ than are named", d.More)
		}
		table.Add(d.Kind, all, strconv.FormatInt(d.Hub, 10), strconv.FormatInt(d.Agent, 10), cluster)
		for _, o := range d.Objects {
			table.Add("", o.Name, o.Hub, o.Agent, o.Cluster)
		}
	}
	return table
}
