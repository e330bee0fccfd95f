// Package plan is the command `meshctl plan`: what a change of policies would do.
//
//	plan.go    the command
//	change.go  the change: manifests in files
//	paint.go   the answer as text and as Markdown
package plan

import (
	"context"
	"io"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/meshctl/meshctl/cmd/cmdutil"
	"github.com/meshctl/meshctl/engine/admission"
	"github.com/meshctl/meshctl/engine/explain"
	"github.com/meshctl/meshctl/engine/snapshot"
)

// Options of the command.
type Options struct {
	Streams *cmdutil.Streams
	Output  cmdutil.OutputFlag
	Source  cmdutil.Source
	// Files are files and folders; - is standard input.
	Files []string
	// Delete the objects in the files.
	Delete bool
	// Now is the time at which new objects are created, which decides their precedence.
	Now func() time.Time
}

// The exit codes, as those of terraform plan -detailed-exitcode.
const (
	exitFailure = 1
	exitChanges = 2
)

const long = `Says what would happen if manifests were applied, or with --delete were deleted:
who is refused from now on, which requests go elsewhere, what else is done with
them, and which objects meshctl would write in each cluster, with their
differences. Nothing is written.

-f names a file, a folder with all that is below it, or - for standard input.
Manifests of other kinds than meshctl's are left out. What is there now comes
from the management cluster and the registered clusters or, with --dir, from a
folder as for "meshctl translate".

-o markdown is for the description of a pull request.`

const example = `  # Say what a file would change
  meshctl plan -f policies.yaml

  # Say what deleting it would change
  meshctl plan -f policies.yaml --delete

  # Comment on a pull request, without a cluster
  meshctl plan -f ./policies --dir ./manifests -o markdown`

// NewCmd returns the command; runF replaces the run in tests.
func NewCmd(f *cmdutil.Factory, runF func(context.Context, *Options) error) *cobra.Command {
	opts := &Options{Streams: f.Streams, Now: f.Now}
	opts.Source.Factory = f
	cmd := &cobra.Command{
		Use: "plan -f FILE",
		// What other programs call it.
		SuggestFor: []string{"diff"},
		Short:      "Say what applying or deleting manifests would change",
		Long:       long,
		Example:    example,
		Args:       cmdutil.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if len(opts.Files) == 0 {
				return cmdutil.FlagErrorf("-f is required: a file, a folder, or - for standard input")
			}
			if runF != nil {
				return runF(cmd.Context(), opts)
			}
			return planRun(cmd.Context(), opts)
		},
		ValidArgsFunction: cobra.NoFileCompletions,
	}
	cmdutil.FailWith(cmd, exitFailure)
	cmdutil.ExitCodes(cmd,
		cmdutil.Exit{Code: cmdutil.ExitOK, Means: "nothing would change"},
		cmdutil.Exit{Code: exitFailure, Means: "any error, such as a wrong flag or a file that does not exist"},
		cmdutil.Exit{Code: exitChanges, Means: "something would change"},
	)
	cmd.Flags().StringSliceVarP(&opts.Files, "filename", "f", nil, "`file` or folder of manifests, or -; may be repeated")
	cmd.Flags().BoolVar(&opts.Delete, "delete", false, "the objects in the files are deleted")
	opts.Output.AddFlag(cmd, cmdutil.FormatText, cmdutil.FormatJSON, cmdutil.FormatYAML, cmdutil.FormatMarkdown)
	opts.Output.Prints(cmdutil.Form{Value: explain.Planned{}})
	opts.Source.AddFlags(cmd)
	return cmd
}

func planRun(ctx context.Context, o *Options) error {
	// Mistakes in the files first: reading clusters takes longer.
	manifests, others, err := o.read(admission.NewChecker())
	if err != nil {
		return err
	}
	for _, kind := range slices.SortedFunc(maps.Keys(others), func(a, b schema.GroupKind) int { return strings.Compare(a.String(), b.String()) }) {
		cmdutil.Say(o.Streams, "Note: %s of kind %s left out: the management plane does not read that kind.", snapshot.Count(others[kind], "object"), kind)
	}
	reading, err := o.Source.ReadAll(ctx, o.Streams)
	if err != nil {
		return err
	}
	planned, err := reading.Plan(o.edits(manifests), o.Now())
	if err != nil {
		return err
	}
	if err := o.print(planned); err != nil {
		return err
	}
	if planned.Empty() {
		return nil
	}
	return cmdutil.WithCode(exitChanges, cmdutil.ErrSilent)
}

func (o *Options) print(planned *explain.Planned) error {
	return o.Output.Print(o.Streams.Out, planned, func(out io.Writer) error {
		text := paintText(planned, o.Streams.OutPainter())
		if o.Output.Format == cmdutil.FormatMarkdown {
			text = paintMarkdown(planned)
		}
		_, err := io.WriteString(out, text)
		return err
	})
}
