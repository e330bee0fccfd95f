package cluster

import (
	"context"
	"fmt"
	"strings"

	"github.com/spf13/cobra"
	"k8s.io/client-go/rest"

	"github.com/meshctl/meshctl/cmd/agent"
	"github.com/meshctl/meshctl/cmd/cmdutil"
	"github.com/meshctl/meshctl/cmd/interview"
	"github.com/meshctl/meshctl/engine/explain"
	"github.com/meshctl/meshctl/engine/reading"
	"github.com/meshctl/meshctl/engine/registration"
	"github.com/meshctl/meshctl/engine/snapshot"
	"github.com/meshctl/meshctl/wizards"
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
	Yes             bool
	// Prompter replaces the one that fits the streams.
	Prompter wizards.Prompter
}

const deregisterLong = `Deregisters a cluster and removes everything that meshctl created for it: the
objects on the cluster, meshctl's account and permissions there, and the
objects discovered in it. The resource types of
certificates.mesh.gloo.solo.io stay on the cluster: others may use them.

It first says what would become of requests and of the objects in all clusters,
and asks; where there is no terminal, set --yes.

If a mesh of the cluster has certificates of a VirtualMesh, the command waits
until the agent of the cluster has given it back those that it had before. The
certificates would expire otherwise: nobody renews them any more.

Without --remote-context, the stored credential is used. It can remove the
objects that meshctl wrote, but not its own permissions; this requires your
permissions.

A cluster that is reached through its agent needs no --remote-context: its
registration is marked, meshctl serve removes what it wrote there, and then has
the agent remove itself with all that registration made for it. The command
waits for that, and removes the registration. If it is interrupted, run it
again: it goes on. "meshctl cluster list" shows how far it is. The namespace of
the agent stays. If the cluster was invited, so does what limited the agent; if
it was registered by an earlier version, so do the agent's account and
permissions. The commands that remove them are printed.

If its agent is away, the command says since when, and changes nothing. With
--force, what stands there stays, also what protects. An agent that comes back
later with its certificate is told to remove it, and may do nothing else.

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

  # Deregister a cluster that is reached through its agent
  meshctl cluster deregister cluster-3

  # Deregister a cluster that no longer exists
  meshctl cluster deregister cluster-2 --force --yes`,
		Args: cmdutil.Args("NAME"),
		RunE: func(cmd *cobra.Command, args []string) error {
			opts.Name = args[0]
			if err := registration.CheckName(opts.Name); err != nil {
				return &cmdutil.FlagError{Err: err}
			}
			if !opts.Yes && opts.Prompter == nil && !interview.CanAsk(opts.Streams) {
				return cmdutil.FlagErrorf("there is no terminal to ask on; set --yes to deregister the cluster")
			}
			if runF != nil {
				return runF(cmd.Context(), opts)
			}
			return deregisterRun(cmd.Context(), opts)
		},
		ValidArgsFunction: opts.completeClusters,
	}
	opts.addFlags(cmd)
	opts.Output.AddFlag(cmd, cmdutil.FormatTable, cmdutil.FormatJSON, cmdutil.FormatYAML)
	opts.Output.Prints(cmdutil.Form{Value: registration.Report{}})
	flags := cmd.Flags()
	flags.StringVar(&opts.RemoteContext, "remote-context", "", "`context` of the cluster (default: the stored credential, or its agent)")
	flags.StringVar(&opts.RemoteNamespace, "remote-namespace", "", "`namespace` of meshctl's ServiceAccount on the cluster (default: as registered)")
	flags.BoolVar(&opts.Force, "force", false, "deregister the cluster even if it cannot be cleaned")
	flags.BoolVar(&opts.Yes, "yes", false, "do not ask")
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
		Force: opts.Force, UserAgent: opts.userAgent(), Store: agent.RelayStore,
		Progress: func(text string) { say(opts.Streams, "%s", text) },
	}
	where := ""
	if opts.RemoteContext != "" {
		if options.RemoteConfig, err = opts.remote(opts.RemoteContext); err != nil {
			return err
		}
		where = " (" + options.RemoteConfig.Host + ")"
	}
	if !opts.Yes {
		if agreed, err := opts.agree(ctx, mgmt); err != nil || !agreed {
			return err
		}
	}
	say(opts.Streams, "Deregistering cluster %s%s from the management plane in %s.", opts.Name, where, mgmt.Host)
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

// agree says what would go and become of traffic, and asks. No is the answer that return gives.
func (o *DeregisterOptions) agree(ctx context.Context, mgmt *rest.Config) (bool, error) {
	reader := reading.Management{
		Config: mgmt, Namespace: o.namespace, Version: o.factory.Version.Version, Detours: cmdutil.Detours(o.factory, o.kubeconfig),
	}
	read, err := cmdutil.ReadClusters(ctx, o.Streams, cmdutil.NewProgress(o.Streams), reader.Clusters)
	if err != nil {
		return false, typed(err)
	}
	registered := snapshot.Ref{Kind: snapshot.KubernetesCluster, Namespace: o.namespace, Name: o.Name}
	planned, err := read.Plan([]explain.Edit{{Ref: registered}}, o.factory.Now())
	if err != nil {
		return false, err
	}
	cmdutil.SayLines(o.Streams, departure(o.Name, planned))
	prompter := o.Prompter
	if prompter == nil {
		prompter = (&interview.Flags{}).Prompter(ctx, o.Streams)
	}
	answer, err := prompter.Select(wizards.Question{Text: "Deregister " + o.Name + "?"}, []wizards.Option{{Value: "no"}, {Value: "yes"}}, "no")
	if err != nil {
		return false, interview.ExitError(err)
	}
	if answer != "yes" {
		say(o.Streams, "Nothing was changed.")
	}
	return answer == "yes", nil
}

// maxEffects bounds the effects that are named before the question.
const maxEffects = 20

// departure says what deregistering a cluster does.
func departure(name string, planned *explain.Planned) string {
	if planned.Changes[0].Verb == explain.Unchanged {
		return "Cluster " + name + " is not registered; what an earlier registration left there is removed."
	}
	var b strings.Builder
	b.WriteString("What it does to traffic:\n")
	if len(planned.Effects) == 0 {
		b.WriteString("  nothing\n")
	}
	for i := range planned.Effects {
		if i == maxEffects {
			fmt.Fprintf(&b, "  … and %d more\n", len(planned.Effects)-i)
			break
		}
		fmt.Fprintf(&b, "  %s %s\n", planned.Effects[i].Mark(), planned.Effects[i].Text())
	}
	for i := range planned.Clusters {
		where := "In cluster " + planned.Clusters[i].Cluster
		if planned.Clusters[i].Cluster == "" {
			where = "In the management plane"
		}
		fmt.Fprintf(&b, "%s: %s.\n", where, planned.Clusters[i].Verbs())
	}
	fmt.Fprintf(&b, "meshctl's account and permissions in cluster %s are removed, and agents give meshes back the certificates that they had.", name)
	return b.String()
}
