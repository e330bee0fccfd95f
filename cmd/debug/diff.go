package debug

import (
	"context"
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/meshctl/meshctl/cmd/cmdutil"
	"github.com/meshctl/meshctl/engine/explain"
	"github.com/meshctl/meshctl/engine/reading"
	"github.com/meshctl/meshctl/engine/snapshot"
)

// DiffOptions are those of meshctl debug diff.
type DiffOptions struct {
	Streams *cmdutil.Streams
	Output  cmdutil.OutputFlag
	Source  cmdutil.Source
	// Before and After are folders, snapshots or bundles; an empty After is what is now.
	Before, After string
}

// The exit codes, as those of meshctl plan.
const (
	exitFailure = 1
	exitDiffer  = 2
)

const diffLong = `Compares two recordings: what users changed, which clusters came, went, were
lost or found, what that does to traffic, which issues are new, and which
objects differ in each cluster.

BEFORE and AFTER are snapshots, bundles, or folders as for "meshctl translate".
Without AFTER, it is what is now: the management cluster and all registered
ones are read.`

func newCmdDiff(f *cmdutil.Factory, runF func(context.Context, *DiffOptions) error) *cobra.Command {
	opts := &DiffOptions{Streams: f.Streams}
	opts.Source.Factory = f
	cmd := &cobra.Command{
		Use:   "diff BEFORE [AFTER]",
		Short: "Compare two recordings, and say what differs for traffic",
		Long:  diffLong,
		Example: `  # Say what has changed since a snapshot was recorded
  meshctl debug diff monday.zip

  # Compare two snapshots, without a cluster
  meshctl debug diff monday.zip tuesday.zip -o json`,
		Args: cmdutil.Args("BEFORE", "[AFTER]"),
		RunE: func(cmd *cobra.Command, args []string) error {
			opts.Before = args[0]
			if len(args) > 1 {
				opts.After = args[1]
				for _, name := range []string{"kubeconfig", "context", "namespace"} {
					if cmd.Flags().Changed(name) {
						return cmdutil.FlagErrorf("--%s is about what is now, and AFTER is given as well; leave one of them out", name)
					}
				}
			}
			if runF != nil {
				return runF(cmd.Context(), opts)
			}
			return diffRun(cmd.Context(), opts)
		},
		ValidArgsFunction: func(_ *cobra.Command, args []string, _ string) ([]string, cobra.ShellCompDirective) {
			if len(args) > 1 {
				return nil, cobra.ShellCompDirectiveNoFileComp
			}
			return nil, cobra.ShellCompDirectiveDefault
		},
	}
	cmdutil.FailWith(cmd, exitFailure)
	cmdutil.ExitCodes(cmd,
		cmdutil.Exit{Code: cmdutil.ExitOK, Means: "nothing differs"},
		cmdutil.Exit{Code: exitFailure, Means: "any error, such as a file that does not exist"},
		cmdutil.Exit{Code: exitDiffer, Means: "something differs"},
	)
	opts.Output.AddFlag(cmd, cmdutil.FormatText, cmdutil.FormatJSON, cmdutil.FormatYAML)
	opts.Output.Prints(cmdutil.Form{Value: explain.Delta{}})
	opts.Source.AddClusterFlags(cmd)
	return cmd
}

func diffRun(ctx context.Context, o *DiffOptions) error {
	before, err := o.open(o.Before)
	if err != nil {
		return err
	}
	var after *reading.Reading
	if o.After != "" {
		after, err = o.open(o.After)
	} else {
		after, err = o.Source.ReadAll(ctx, o.Streams)
	}
	if err != nil {
		return err
	}
	difference, err := reading.Compare(before, after)
	if err != nil {
		return err
	}
	difference.Before.Name, difference.After.Name = o.Before, o.After
	err = o.Output.Print(o.Streams.Out, difference, func(out io.Writer) error {
		if _, err := io.WriteString(out, paintDifference(difference, o.Streams.OutPainter())); err != nil {
			return err
		}
		cmdutil.SayExplained(o.Streams, append(cmdutil.CodesOf(difference.NewIssues), cmdutil.CodesOf(difference.FixedIssues)...))
		return nil
	})
	if err != nil || difference.Empty() {
		return err
	}
	return cmdutil.WithCode(exitDiffer, cmdutil.ErrSilent)
}

// open reads a recording. Its notes say when it was recorded, which the answer says, too.
func (o *DiffOptions) open(name string) (*reading.Reading, error) {
	progress := cmdutil.NewProgress(o.Streams)
	progress.StartLate("Reading "+name, 2*time.Second)
	read, err := reading.Folder(name)
	progress.End(err)
	return read, err
}

// paintDifference is a Delta for people: what happened to the fleet and to traffic first, then each object.
func paintDifference(d *explain.Delta, painter cmdutil.Painter) string {
	var b strings.Builder
	fmt.Fprintf(&b, "before: %s\nafter:  %s\n", recordingText(d.Before), recordingText(d.After))
	if d.Empty() {
		b.WriteString("\nNothing differs.\n")
		return b.String()
	}
	if len(d.Fleet)+len(d.Changes) > 0 {
		b.WriteString("\nWhat changed:\n")
	}
	for _, c := range d.Fleet {
		text := c.Change + " cluster " + c.Cluster
		if c.Reason != "" {
			text += ": " + c.Reason
		}
		painter.Paragraph(&b, "  ", "    ", cmdutil.Clean(text))
	}
	for _, c := range d.Changes {
		painter.Paragraph(&b, "  ", "    ", cmdutil.Clean(fmt.Sprintf("%s %s %s/%s", c.Verb, c.Ref.Kind, c.Ref.Namespace, c.Ref.Name)))
	}
	b.WriteString("\nWhat it does to traffic:\n")
	if len(d.Effects) == 0 {
		b.WriteString("  nothing\n")
	}
	for i := range d.Effects {
		painter.Paragraph(&b, "  "+d.Effects[i].Mark()+" ", "    ", cmdutil.Clean(d.Effects[i].Text()))
	}
	for _, list := range []struct {
		title  string
		issues []snapshot.Issue
	}{{"New issues", d.NewIssues}, {"Issues that are gone", d.FixedIssues}} {
		if len(list.issues) > 0 {
			b.WriteString("\n" + list.title + ":\n")
			_ = cmdutil.PrintIssues(&b, painter, "  ", list.issues) // a Builder takes everything
		}
	}
	for _, note := range d.Notes {
		b.WriteByte('\n')
		painter.Paragraph(&b, "Note: ", "  ", cmdutil.Clean(note)+".")
	}
	for i := range d.Clusters {
		c := &d.Clusters[i]
		name := c.Cluster
		if name == "" {
			name = "management plane"
		}
		fmt.Fprintf(&b, "\n%s: %s\n", cmdutil.Clean(name), c.Verbs())
		for line := range strings.Lines(c.Text()) {
			b.WriteString("  " + cmdutil.CleanLines(line)) // differences are not wrapped
		}
	}
	return b.String()
}

func recordingText(r explain.Recording) string {
	switch {
	case r.Name == "":
		return "what is now"
	case r.Recorded.IsZero():
		return cmdutil.Clean(r.Name)
	}
	return cmdutil.Clean(r.Name) + ", recorded at " + r.Recorded.Local().Format(time.DateTime)
}
