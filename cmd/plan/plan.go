// Package plan is the command `meshctl plan`: what a change of policies would do.
//
//	plan.go      the command
//	change.go    the change: manifests in files
//	dryrun.go    what the API server would make of them
//	failon.go    what fails a plan
//	paint.go     the answer as text, markdown.go as Markdown, github.go as annotations
package plan

import (
	"context"
	"errors"
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
	"github.com/meshctl/meshctl/engine/offline"
	"github.com/meshctl/meshctl/engine/reading"
	"github.com/meshctl/meshctl/engine/snapshot"
)

// Options of the command.
type Options struct {
	Streams *cmdutil.Streams
	Output  cmdutil.OutputFlag
	Source  cmdutil.Source
	// Files are files and folders; - is standard input.
	Files []string
	// Delete the objects in the files. Replace: they replace what is stored, and no API server is asked.
	Delete, Replace bool
	// FieldManager is that of server-side apply; empty for what kubectl apply does.
	FieldManager string
	// Summary prints the verdict and the calls only.
	Summary bool
	FailOn  failOn
	// Now is the time at which new objects are created, which decides their precedence.
	Now func() time.Time
}

// The exit codes, as those of terraform plan -detailed-exitcode. A plan that fails has cmdutil.ExitFindings.
const (
	exitFailure = 1
	exitChanges = 2
)

const long = `Says what would happen if manifests were applied, or with --delete were deleted:
the verdict in a line, who loses or gains which calls, which requests go
elsewhere, what else is done with them, and which objects meshctl would write in
each cluster, with their differences. Lines that begin with ! are about requests
that would fail and did not before, and about services that would open to
callers whom no policy names. Where the meshctl serve that leads counts what
requests do, it is said what the callers sent that lose a service. Nothing is
written.

-f names a file, a folder with all that is below it, or - for standard input.
Manifests of other kinds than meshctl's are left out. What is there now comes
from the management cluster and the registered clusters or, with --dir, from a
folder as for "meshctl translate".

With a cluster, its API server says by a dry run what each object would be:

  as "kubectl apply" does  for objects that it has applied: fields that were in
                           the file and no longer are go, and others stay
  by server-side apply     for all other objects, as manager kubectl, or for
                           all with --field-manager: fields of others stay
  not at all               with --replace, --dir or --snapshot, or if you may
                           not: the file is taken to replace the object

What admission refuses is said for each object, and has no effect in the plan.

-o markdown is for the description of a pull request, and -o github for a step
of a GitHub workflow: it annotates the lines of the files. --fail-on makes a
plan fail, one or several of:

  error        an issue with severity error would be new
  warning      an issue with severity warning or error would be new
  access-lost  requests would fail that do not now
  never        only what the API server would refuse fails`

const example = `  # Say what a file would change
  meshctl plan -f policies.yaml

  # Say what deleting it would change
  meshctl plan -f policies.yaml --delete

  # Comment on a pull request, without a cluster
  meshctl plan -f ./policies --dir ./manifests -o markdown

  # Fail a workflow, with annotations, if callers lose a service
  meshctl plan -f ./policies -o github --fail-on error,access-lost

  # What Flux would do
  meshctl plan -f ./policies --field-manager kustomize-controller --summary`

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
			if opts.Summary && (opts.Output.Format != cmdutil.FormatText && opts.Output.Format != cmdutil.FormatMarkdown) {
				return cmdutil.FlagErrorf("--summary is for -o text and -o markdown; leave one of them out")
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
		cmdutil.Exit{Code: cmdutil.ExitFindings, Means: "the API server would refuse an object, or --fail-on says that it fails"},
	)
	cmd.Flags().StringSliceVarP(&opts.Files, "filename", "f", nil, "`file` or folder of manifests, or -; may be repeated")
	cmd.Flags().BoolVar(&opts.Delete, "delete", false, "the objects in the files are deleted")
	cmd.Flags().BoolVar(&opts.Replace, "replace", false, "take the files to replace the objects, without a dry run")
	cmd.Flags().StringVar(&opts.FieldManager, "field-manager", "", "plan server-side apply as this `manager`")
	cmd.Flags().BoolVar(&opts.Summary, "summary", false, "print only the verdict, and which calls are lost and gained")
	cmd.Flags().Var(&opts.FailOn, "fail-on", "exit with code 5 because of these `findings`: "+strings.Join(failOns, ", "))
	_ = cmd.RegisterFlagCompletionFunc("fail-on", cobra.FixedCompletions(failOns, cobra.ShellCompDirectiveNoFileComp))
	_ = cmd.RegisterFlagCompletionFunc("field-manager", cobra.NoFileCompletions)
	opts.Output.AddFlag(cmd, cmdutil.FormatText, cmdutil.FormatJSON, cmdutil.FormatYAML, cmdutil.FormatMarkdown, formatGitHub)
	opts.Output.Prints(cmdutil.Form{Value: explain.Planned{}})
	opts.Source.AddFlags(cmd)
	opts.Source.AddServerFlag(cmd)
	for _, other := range []string{"replace", "delete", "dir", "snapshot"} {
		cmd.MarkFlagsMutuallyExclusive("field-manager", other)
	}
	cmd.MarkFlagsMutuallyExclusive("replace", "delete")
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
	evidence := o.Source.Evidence(ctx)
	read, err := o.Source.ReadAll(ctx, o.Streams)
	if err != nil {
		return err
	}
	read.Evidence = evidence()
	planned, err := o.plan(ctx, read, manifests)
	if err != nil {
		return err
	}
	if err := o.print(planned, manifests); err != nil {
		return err
	}
	switch why := o.FailOn.fails(planned); {
	case why != "":
		cmdutil.Say(o.Streams, "Fails: %s.", why)
		return cmdutil.WithCode(cmdutil.ExitFindings, cmdutil.ErrFindings)
	case planned.Empty():
		return nil
	}
	return cmdutil.WithCode(exitChanges, cmdutil.ErrSilent)
}

// plan says what the manifests would do. With a cluster, its API server says what the objects would be.
func (o *Options) plan(ctx context.Context, read *reading.Reading, manifests []offline.Manifest) (*explain.Planned, error) {
	if o.Delete || o.Replace || o.Source.Dir != "" {
		return read.Plan(o.edits(manifests), o.Now())
	}
	management, err := o.Source.Management()
	if err != nil {
		return nil, err
	}
	run, err := newDryRun(management.Config, o.FieldManager)
	if err != nil {
		return nil, err
	}
	edits, refused, err := run.edits(ctx, manifests)
	var denied *deniedError
	if errors.As(err, &denied) {
		planned, err := read.Plan(o.edits(manifests), o.Now())
		if err == nil {
			planned.SetUnasked(denied.Error())
		}
		return planned, err
	}
	if err != nil {
		return nil, err
	}
	planned, err := read.Plan(edits, o.Now())
	if err != nil {
		return nil, err
	}
	planned.Refuse(refused)
	planned.Notes = append(planned.Notes, run.notes...)
	return planned, nil
}

func (o *Options) print(planned *explain.Planned, manifests []offline.Manifest) error {
	return o.Output.Print(o.Streams.Out, planned, func(out io.Writer) error {
		var text string
		switch o.Output.Format {
		case cmdutil.FormatMarkdown:
			text = paintMarkdown(planned, o.Summary)
		case formatGitHub:
			text = paintGitHub(planned, manifests)
		default:
			text = paintText(planned, o.Streams.OutPainter(), o.Summary)
		}
		if _, err := io.WriteString(out, text); err != nil {
			return err
		}
		if o.Output.Format == cmdutil.FormatText {
			cmdutil.SayExplained(o.Streams, cmdutil.CodesOf(slices.Concat(planned.NewIssues, planned.FixedIssues)))
		}
		return nil
	})
}
