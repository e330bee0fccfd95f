package describe

import (
	"context"
	"fmt"
	"io"

	"github.com/spf13/cobra"

	"github.com/meshctl/meshctl/cmd/cmdutil"
	"github.com/meshctl/meshctl/engine/explain"
	"github.com/meshctl/meshctl/engine/snapshot"
)

func newCmdProblems(f *cmdutil.Factory, runF func(context.Context, *Options) error) *cobra.Command {
	opts := &Options{Streams: f.Streams, Now: f.Now}
	opts.Source.Factory = f
	cmd := &cobra.Command{
		Use:     "problems",
		Aliases: []string{"issues"},
		Short:   "All problems, worst first, each with a next step",
		Long: `All problems, worst first: all that is wrong with one object in one place, each
with a next step.

What passes by itself, such as an object that serve is about to delete, is
counted only; -o wide lists it, too, and each issue on a line of its own.`,
		Example: `  # Show what is wrong, and what to do about it
  meshctl describe problems

  # Check manifests before they are applied
  meshctl describe problems --dir ./manifests -o json`,
		Args: cmdutil.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if runF != nil {
				return runF(cmd.Context(), opts)
			}
			return problemsRun(cmd.Context(), opts)
		},
	}
	opts.Output.AddFlag(cmd, cmdutil.FormatTable, cmdutil.FormatWide, cmdutil.FormatJSON, cmdutil.FormatYAML)
	opts.Output.Prints(cmdutil.Form{Value: []explain.Problem{}})
	opts.Source.AddFlags(cmd)
	opts.Source.AddClustersFlag(cmd)
	opts.Source.AddServerFlag(cmd)
	return cmd
}

func problemsRun(ctx context.Context, opts *Options) error {
	index, err := opts.ask(ctx)
	if err != nil {
		return err
	}
	problems := explain.ProblemList(index, opts.Now())
	sayNotRead(opts, index)
	return opts.Output.Print(opts.Streams.Out, problems, func(out io.Writer) error {
		if len(problems) == 0 {
			_, err := fmt.Fprintln(opts.Streams.Err, cmdutil.Clean(index.Tables(nil).Problems(opts.Now()).Empty))
			return err
		}
		issues := make([]snapshot.Issue, len(problems))
		for i := range problems {
			issues[i] = problems[i].Issue
		}
		painter := opts.Output.Painter(opts.Streams)
		if opts.Output.Format == cmdutil.FormatWide {
			err := cmdutil.PrintIssues(out, painter, "", issues)
			cmdutil.SayExplained(opts.Streams, cmdutil.CodesOf(issues))
			return err
		}
		groups, passing := explain.GroupIssues(index, issues)
		if err := cmdutil.PrintIssueGroups(out, painter, groups); err != nil {
			return err
		}
		if passing > 0 {
			cmdutil.Say(opts.Streams, "and %s: -o wide", explain.PassingText(passing))
		}
		cmdutil.Say(opts.Streams, "%s", explain.Count(issues))
		cmdutil.SayExplained(opts.Streams, cmdutil.CodesOf(issues))
		return nil
	})
}
