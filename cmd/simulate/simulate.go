// Package simulate is the command `meshctl simulate`: what if something did not answer.
package simulate

import (
	"context"
	"io"

	"github.com/spf13/cobra"

	"github.com/meshctl/meshctl/cmd/cmdutil"
	"github.com/meshctl/meshctl/engine/explain"
)

// Options of the command.
type Options struct {
	Streams *cmdutil.Streams
	Output  cmdutil.OutputFlag
	Source  cmdutil.Source
	// Lose are names of what is assumed not to answer; none asks for what stands open and what has no use.
	Lose []string
}

const long = `Says who answers if a cluster, a region, a service, a subset or a workload does
not: who answers each service then, and which share of its requests, what has no
backup, which failover is off and why, and which gateways for calls between
clusters are lost. Nothing is changed, and no request is sent.

An outage is no edit: what was written for a lost cluster stays in force, and
its callers are not looked at. Requests that fail until outlier detection has
excluded what does not answer are not counted.

--lose takes KIND/NAME, or a name that only one thing has:

  cluster/NAME            all pods of a cluster
  region/NAME             all pods on the nodes of a region
  service/NAME            all pods behind a service
  subset/SERVICE:SUBSET   those of a subset that policies send requests to
  workload/NAME           all pods of a workload, which may be a gateway

Without --lose, it lists what is worth a look on a quiet day: services that let
everybody in, where others let in callers without an identity all the same, such
as at pods without a proxy, services in no mesh beside those of one, services
that let nobody in, callers that no service lets in, and policies that have no
effect.

"meshctl why FROM TO --assume-down NAME" asks the same of one request.`

const example = `  # Who answers without cluster-2, and what has no backup?
  meshctl simulate --lose cluster-2

  # Lose a service and a version of another one
  meshctl simulate --lose service/ratings.bookinfo.cluster-1 \
    --lose subset/reviews.bookinfo.cluster-2:version-v3

  # What stands open, and what has no use?
  meshctl simulate

  # Check the manifests in a folder before a day of maintenance
  meshctl simulate --lose region/us-east --dir ./manifests -o json`

// NewCmd returns the command; runF replaces the run in tests.
func NewCmd(f *cmdutil.Factory, runF func(context.Context, *Options) error) *cobra.Command {
	opts := &Options{Streams: f.Streams}
	opts.Source.Factory = f
	cmd := &cobra.Command{
		Use:        "simulate [--lose NAME]",
		SuggestFor: []string{"whatif", "what-if", "outage"},
		Short:      "Say who answers if something does not",
		Long:       long,
		Example:    example,
		Args:       cmdutil.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if runF != nil {
				return runF(cmd.Context(), opts)
			}
			return run(cmd.Context(), opts)
		},
		ValidArgsFunction: cobra.NoFileCompletions,
	}
	opts.Output.AddFlag(cmd, cmdutil.FormatTable, cmdutil.FormatWide, cmdutil.FormatJSON, cmdutil.FormatYAML)
	cmdutil.ExitCodes(cmd, cmdutil.Exit{Code: cmdutil.ExitFindings, Means: "something has no backup: nobody answers some of the requests"})
	opts.Output.Prints(cmdutil.Form{When: "with --lose", Value: explain.Simulation{}}, cmdutil.Form{When: "without --lose", Value: explain.Exposure{}})
	opts.Source.AddFlags(cmd)
	cmd.Flags().StringSliceVar(&opts.Lose, "lose", nil, "`name` of what does not answer; may be repeated")
	_ = cmd.RegisterFlagCompletionFunc("lose", func(cmd *cobra.Command, _ []string, _ string) ([]string, cobra.ShellCompDirective) {
		return opts.Source.LossNames(cmd.Context()), cobra.ShellCompDirectiveNoFileComp
	})
	return cmd
}

func run(ctx context.Context, o *Options) error {
	read, err := o.Source.ReadAll(ctx, o.Streams)
	if err != nil {
		return err
	}
	index := read.Index(nil)
	if len(o.Lose) == 0 {
		exposure := explain.ExposureOf(index)
		return o.Output.Print(o.Streams.Out, exposure, func(out io.Writer) error {
			return cmdutil.PrintSections(out, o.Output.Painter(o.Streams), exposure.Page())
		})
	}
	losses, err := cmdutil.Losses(index, o.Lose)
	if err != nil {
		return err
	}
	simulated := read.Simulate(index, losses)
	if err := o.Output.Print(o.Streams.Out, simulated, func(out io.Writer) error {
		painter := o.Output.Painter(o.Streams)
		if len(simulated.Issues) == 0 {
			return cmdutil.PrintSections(out, painter, simulated.Page())
		}
		return cmdutil.PrintPage(out, painter, simulated.Page())
	}); err != nil {
		return err
	}
	if len(simulated.Issues) > 0 {
		return cmdutil.ErrFindings
	}
	return nil
}
