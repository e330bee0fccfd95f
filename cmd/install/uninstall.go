package install

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"k8s.io/client-go/rest"

	"github.com/meshctl/meshctl/cmd/agent"
	"github.com/meshctl/meshctl/cmd/cluster"
	"github.com/meshctl/meshctl/cmd/cmdutil"
	"github.com/meshctl/meshctl/cmd/interview"
	"github.com/meshctl/meshctl/engine/registration"
	"github.com/meshctl/meshctl/engine/snapshot"
	"github.com/meshctl/meshctl/wizards"
)

// UninstallOptions of the command.
type UninstallOptions struct {
	Streams *cmdutil.Streams
	Output  cmdutil.OutputFlag
	// Prompter replaces the one that fits the streams.
	Prompter wizards.Prompter
	Flags    interview.Flags

	Kube        cmdutil.KubeFlags
	Namespace   string
	KeepTraffic bool
	Force       bool
	Yes         bool
	DryRun      bool

	factory *cmdutil.Factory
}

const uninstallLong = `Removes meshctl from a management cluster, with all that it has written: it
deregisters the clusters, ends "meshctl serve", and deletes the custom resource
types with all policies. It first says what will go, and asks; where there is no
terminal, set --yes.

Clusters are cleaned with the contexts of the kubeconfig that lead to them, or
else through their agents, which then remove themselves. If there is neither
for a cluster, because its agent is away or serve does not run, the command
fails and changes nothing; with --force, it leaves there what is there, and
prints how to remove it.

With --keep-traffic, what meshctl has written for the meshes stays in the
clusters, without its labels, so that requests go on as they do, for instance
while you migrate. Nobody keeps it up to date then, and nobody renews the
certificates of meshes that have those of a VirtualMesh. Each cluster needs a
context then: an agent cannot tell what is to stay.`

// NewUninstallCmd returns the command `meshctl uninstall`; runF replaces its run in tests.
func NewUninstallCmd(f *cmdutil.Factory, runF func(context.Context, *UninstallOptions) error) *cobra.Command {
	opts := &UninstallOptions{Streams: f.Streams, factory: f}
	cmd := &cobra.Command{
		Use:   "uninstall",
		Short: "Remove the management plane and all that it has written",
		Long:  uninstallLong,
		Example: `  # Show what would go, and remove nothing
  meshctl uninstall --context cluster-1 --dry-run

  # Remove everything without being asked
  meshctl uninstall --context cluster-1 --yes

  # Leave the configuration of the meshes in place
  meshctl uninstall --context cluster-1 --keep-traffic`,
		Args: cmdutil.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if !opts.Yes && !opts.DryRun && opts.Prompter == nil && !interview.CanAsk(opts.Streams) {
				return cmdutil.FlagErrorf("there is no terminal to ask on; set --yes to uninstall, or --dry-run to see what would go")
			}
			if runF != nil {
				return runF(cmd.Context(), opts)
			}
			return uninstallRun(cmd.Context(), opts)
		},
	}
	opts.Kube.AddFlags(cmd)
	opts.Output.AddFlag(cmd, cmdutil.FormatTable, cmdutil.FormatJSON, cmdutil.FormatYAML)
	opts.Output.Prints(
		cmdutil.Form{When: "with --dry-run", Value: registration.Uninstallation{}},
		cmdutil.Form{When: "without --dry-run", Value: registration.Report{}},
	)
	flags := cmd.Flags()
	flags.StringVarP(&opts.Namespace, "namespace", "n", snapshot.DefaultNamespace, "`namespace` of the management plane")
	flags.BoolVar(&opts.KeepTraffic, "keep-traffic", false, "leave in the clusters what was written for their meshes, without an owner")
	flags.BoolVar(&opts.Force, "force", false, "go on where a cluster cannot be cleaned")
	flags.BoolVar(&opts.Yes, "yes", false, "do not ask")
	flags.BoolVar(&opts.DryRun, "dry-run", false, "show what would go, and remove nothing")
	cmd.MarkFlagsMutuallyExclusive("yes", "dry-run")
	return cmd
}

func uninstallRun(ctx context.Context, o *UninstallOptions) error {
	config, err := o.Kube.Config(o.factory)
	if err != nil {
		return err
	}
	progress := cmdutil.NewProgress(o.Streams)
	found, err := registration.PlanUninstall(ctx, registration.UninstallOptions{
		Config: config, Context: o.Kube.Context, Namespace: o.Namespace, Contexts: cmdutil.ContextConfigs(o.factory, o.Kube.Kubeconfig), Force: o.Force, KeepTraffic: o.KeepTraffic,
		Progress: func(text string) { progress.Note("%s", text) }, UserAgent: "meshctl/" + o.factory.Version.Version, Store: agent.RelayStore,
	})
	if err != nil {
		return invalid(err)
	}
	nothing, err := found.Empty(ctx)
	if err != nil {
		return invalid(err)
	}
	if nothing {
		say(o.Streams, "Nothing to remove: meshctl is not installed in namespace %s of %s.", o.Namespace, config.Host)
		return nil
	}
	if o.DryRun {
		return o.Output.Print(o.Streams.Out, found, func(out io.Writer) error {
			_, err := io.WriteString(out, cmdutil.CleanLines(o.plan(found, config)))
			return err
		})
	}
	if !o.Yes {
		if agreed, err := o.agree(ctx, found, config); err != nil || !agreed {
			return err
		}
	}
	progress.Start("Uninstalling meshctl from namespace " + o.Namespace + " of " + config.Host)
	report, err := found.Run(ctx)
	progress.End(err)
	if len(report.Changes) > 0 {
		err = errors.Join(err, cluster.PrintReport(o.Streams, &o.Output, &report))
	}
	if err != nil {
		return invalid(err)
	}
	say(o.Streams, "Uninstalled.")
	return nil
}

// plan says what will go.
func (o *UninstallOptions) plan(found *registration.Uninstallation, config *rest.Config) string {
	var b strings.Builder
	fmt.Fprintf(&b, "From namespace %s of %s:\n", o.Namespace, cmp.Or(o.Kube.Context, config.Host))
	if found.Server != nil {
		fmt.Fprintf(&b, "  serve ends (%s, %d of %d replicas are ready)\n", found.Server.Image, found.Server.Ready, found.Server.Replicas)
	}
	verb := "are deleted there"
	if o.KeepTraffic {
		verb = "stay there without an owner"
	}
	for _, c := range found.Clusters {
		fmt.Fprintf(&b, "  cluster %s is deregistered: ", c.Name)
		if c.Problem != "" {
			fmt.Fprintf(&b, "it cannot be cleaned: %s\n", c.Problem)
			continue
		}
		if c.Agent {
			b.WriteString("its agent deletes there what meshctl has written, and then itself\n")
			continue
		}
		fmt.Fprintf(&b, "%s %s\n", snapshot.Count(c.Objects, "object"), verb)
	}
	for _, kind := range slices.Sorted(maps.Keys(found.Policies)) {
		fmt.Fprintf(&b, "  %s deleted\n", areDeleted(found.Policies[kind], kind))
	}
	for _, kept := range found.Kept {
		fmt.Fprintf(&b, "Stays: %s\n", kept)
	}
	return b.String()
}

func areDeleted(n int, kind string) string {
	if n == 1 {
		return "1 " + kind + " is"
	}
	return fmt.Sprintf("%d of kind %s are", n, kind)
}

// agree shows what will go and asks. No is the answer that return gives.
func (o *UninstallOptions) agree(ctx context.Context, found *registration.Uninstallation, config *rest.Config) (bool, error) {
	cmdutil.SayLines(o.Streams, o.plan(found, config))
	prompter := o.Prompter
	if prompter == nil {
		prompter = o.Flags.Prompter(ctx, o.Streams)
	}
	answer, err := prompter.Select(wizards.Question{Text: "Uninstall?"}, []wizards.Option{{Value: "no"}, {Value: "yes"}}, "no")
	if err != nil {
		return false, interview.ExitError(err)
	}
	if answer != "yes" {
		say(o.Streams, "Nothing was removed.")
	}
	return answer == "yes", nil
}
