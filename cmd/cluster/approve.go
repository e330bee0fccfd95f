package cluster

import (
	"context"
	"errors"
	"slices"

	"github.com/spf13/cobra"

	"github.com/meshctl/meshctl/cmd/agent"
	"github.com/meshctl/meshctl/cmd/cmdutil"
	"github.com/meshctl/meshctl/cmd/interview"
	"github.com/meshctl/meshctl/engine/registration"
	"github.com/meshctl/meshctl/engine/snapshot"
	"github.com/meshctl/meshctl/wizards"
)

// ApproveOptions of the command.
type ApproveOptions struct {
	Streams *cmdutil.Streams

	management
	Name            string
	Key             string
	RemoteNamespace string
	ClusterDomain   string
	Yes             bool
	// Prompter replaces the one that fits the streams.
	Prompter wizards.Prompter
}

const approveLong = `Registers the cluster of an agent that waits, and lets the agent speak for it.

As in Gloo Mesh 1.x, agents can share one token: you put it into the Secret
relay-identity-token-secret, in the key token, of the management plane's
namespace and of the agents'. Without that Secret, there is no such token.
Whoever has it can claim any name, so it lets no agent in: one that shows it is
listed as pending, and nothing is read from its cluster or written to it.

The command prints the UID of the agent's cluster (that of its namespace
kube-system), its address and the SHA-256 of its key, and asks. Compare the UID
and the key with the log of the agent. It gets a certificate within a minute,
for this key and this UID, and no other agent does. The name of a cluster with
another UID is refused.

At most 32 agents wait. If there are more, those that have waited longest are
dropped, and counted; they ask again. An agent that was started again has
another key.`

func newCmdApprove(f *cmdutil.Factory, runF func(context.Context, *ApproveOptions) error) *cobra.Command {
	opts := &ApproveOptions{Streams: f.Streams, management: management{factory: f}}
	cmd := &cobra.Command{
		Use:   "approve NAME",
		Short: "Let the agent of a cluster in that waits for approval",
		Long:  approveLong,
		Example: `  # See which agents wait
  meshctl cluster list

  # Let the one of cluster-2 in, after a look at its UID and key
  meshctl cluster approve cluster-2

  # Several agents say that they are of cluster-2: name the key of yours
  meshctl cluster approve cluster-2 --key 3fa85f64`,
		Args: cmdutil.Args("NAME"),
		RunE: func(cmd *cobra.Command, args []string) error {
			opts.Name = args[0]
			if err := registration.CheckName(opts.Name); err != nil {
				return &cmdutil.FlagError{Err: err}
			}
			if !opts.Yes && opts.Prompter == nil && !interview.CanAsk(opts.Streams) {
				return cmdutil.FlagErrorf("there is no terminal to ask on; set --yes, with --key, to approve the agent")
			}
			if opts.Yes && opts.Key == "" {
				return cmdutil.FlagErrorf("--yes needs --key: the key of the agent that you know, as its log has it")
			}
			if runF != nil {
				return runF(cmd.Context(), opts)
			}
			return approveRun(cmd.Context(), opts)
		},
		ValidArgsFunction: opts.completeWaiting,
	}
	opts.addFlags(cmd)
	flags := cmd.Flags()
	flags.StringVar(&opts.Key, "key", "", "`beginning` of the SHA-256 of the agent's key, as its log has it")
	flags.StringVar(&opts.RemoteNamespace, "remote-namespace", "", "`namespace` of the agent on its cluster (default: as registered, else gloo-mesh)")
	flags.StringVar(&opts.ClusterDomain, "cluster-domain", "", "DNS `suffix` of the cluster's Services (default: as registered, else cluster.local)")
	flags.BoolVar(&opts.Yes, "yes", false, "do not ask")
	return cmd
}

// completeWaiting offers the names that agents ask for to the shell.
func (o *ApproveOptions) completeWaiting(cmd *cobra.Command, args []string, _ string) (names []string, _ cobra.ShellCompDirective) {
	config, err := o.config()
	if err != nil || len(args) > 0 {
		return nil, cobra.ShellCompDirectiveNoFileComp
	}
	// A shell can show no error.
	all, _ := registration.Waiting(cmd.Context(), config, o.namespace, o.factory.Now())
	for _, a := range all {
		if registration.CheckName(a.Cluster) == nil { // an agent says what it likes
			names = append(names, a.Cluster)
		}
	}
	slices.Sort(names)
	return slices.Compact(names), cobra.ShellCompDirectiveNoFileComp
}

func approveRun(ctx context.Context, opts *ApproveOptions) error {
	mgmt, err := opts.config()
	if err != nil {
		return err
	}
	agreed := false
	_, err = registration.Approve(ctx, registration.ApproveOptions{
		Name: opts.Name, Key: opts.Key, MgmtConfig: mgmt, MgmtContext: opts.context, MgmtNamespace: opts.namespace,
		RemoteNamespace: opts.RemoteNamespace, ClusterDomain: opts.ClusterDomain, Store: agent.RelayStore,
		Confirm: func(waiting snapshot.RelayWaiting) (bool, error) {
			agreed, err = opts.agree(ctx, waiting)
			return agreed, err
		},
	})
	var none *registration.NotWaitingError
	switch {
	case errors.As(err, &none) && len(none.Agents) == 0:
		return &cmdutil.NotFoundError{Err: err}
	case err != nil:
		return typed(err)
	case agreed:
		say(opts.Streams, "Cluster %s is registered, and its agent gets a certificate within a minute. See with `meshctl cluster list` when it is connected.", opts.Name)
	}
	return nil
}

// agree shows who would be let in, and asks. No is the answer that return gives.
func (o *ApproveOptions) agree(ctx context.Context, waiting snapshot.RelayWaiting) (bool, error) {
	say(o.Streams, "An agent asks to speak for cluster %s:", o.Name)
	say(o.Streams, "  cluster UID   %s", waiting.UID)
	say(o.Streams, "  key SHA-256   %s", waiting.Key)
	say(o.Streams, "  address       %s", waiting.Address)
	if o.Yes {
		return true, nil
	}
	prompter := o.Prompter
	if prompter == nil {
		prompter = (&interview.Flags{}).Prompter(ctx, o.Streams)
	}
	answer, err := prompter.Select(wizards.Question{Text: "Let this agent speak for " + o.Name + "?"}, []wizards.Option{{Value: "no"}, {Value: "yes"}}, "no")
	if err != nil {
		return false, interview.ExitError(err)
	}
	if answer != "yes" {
		say(o.Streams, "Nothing was changed.")
	}
	return answer == "yes", nil
}
