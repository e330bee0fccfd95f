// Package edit is the command `meshctl edit`: changes objects by the questions and flags of
// `meshctl create`, from what they say now.
package edit

import (
	"context"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/meshctl/meshctl/cmd/cmdutil"
	"github.com/meshctl/meshctl/cmd/create"
	"github.com/meshctl/meshctl/wizards"
)

// Options of the command.
type Options struct {
	create.Options
	// File has the object, instead of the management cluster.
	File string
	// Unset are the paths of fields to take away.
	Unset []string

	// path is how the user calls the command.
	path string
}

const long = `On a terminal, the command asks the questions of "meshctl create", each with
what the object says now as its default. What no question is about stays as it
is, and is named. At the end it shows what changes in the object and in each
cluster. You can then apply, save or edit the manifest; if somebody else
changed the object meanwhile, their change is shown, and you are asked again.

Flags replace the values of their fields, and all others stay; --unset takes
fields away. With --apply, --save or --dry-run nothing is asked. Without a
terminal, one of these is required.`

// NewCmd returns the command; runF replaces the run of every subcommand in tests.
func NewCmd(f *cmdutil.Factory, runF func(context.Context, *Options) error) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "edit",
		Short: "Change a policy, VirtualMesh or Role, interactively or with flags",
		Long:  "Changes policies, VirtualMeshes, Roles and RoleBindings.\n\n" + long,
		Example: `  # Answer the questions again, from what the policy says now
  meshctl edit trafficpolicy reviews-shift

  # Preview another timeout for the manifests in a folder, without questions
  meshctl edit trafficpolicy reviews-shift --dir ./manifests --timeout 5s --dry-run`,
	}
	for _, kind := range create.Kinds() {
		cmd.AddCommand(newCmdKind(f, kind, runF))
	}
	return cmd
}

func newCmdKind(f *cmdutil.Factory, kind create.KindCommand, runF func(context.Context, *Options) error) *cobra.Command {
	opts := &Options{Options: create.Options{Streams: f.Streams, Now: f.Now, Form: kind.Form, Answers: wizards.Answers{}, Factory: f, Verb: "edit"}}
	what := "a " + kind.Form.Kind.String()
	if strings.HasPrefix(what, "a A") {
		what = "an" + what[1:]
	}
	cmd := &cobra.Command{
		Use: kind.Use + " [NAME]", Aliases: kind.Aliases, Short: "Change " + what,
		Long: "Changes " + what + ".\n\n" + long,
		Example: "  # Answer the questions again, from what the object says now\n  meshctl edit " + kind.Use + " NAME\n\n" + kind.EditExample +
			"\n\n  # Print the object of a file, changed\n  meshctl edit " + kind.Use + " -f object.yaml -o yaml",
		Args: cmdutil.Args("[NAME]"),
		RunE: func(cmd *cobra.Command, args []string) error {
			if len(args) > 0 {
				opts.Name = args[0]
			}
			opts.path = cmd.CommandPath()
			opts.PrintsOnly(cmd)
			if runF != nil {
				return runF(cmd.Context(), opts)
			}
			return editRun(cmd.Context(), opts)
		},
		ValidArgsFunction: opts.CompleteNames,
	}
	opts.addFlags(cmd)
	create.AddFormFlags(cmd, kind.Form, opts.Answers)
	opts.AddCompletions(cmd)
	return cmd
}

func (o *Options) addFlags(cmd *cobra.Command) {
	o.AddFlags(cmd, create.FlagUsages{
		Namespace: "`namespace` of the object (default: the namespace of the management plane)",
		Apply:     "change the object in the management cluster without confirmation",
		Save:      "write the manifest to this `file`; of the file that it came from, only its part changes",
	}, func(flags *pflag.FlagSet) {
		flags.StringVarP(&o.File, "filename", "f", "", "change the object in this `file`; what it would do is still read from --dir or a cluster")
		flags.StringArrayVar(&o.Unset, wizards.UnsetFlag, nil, "take away this field, as a `path` below spec such as policy.retries; may be repeated")
	})
	cmd.MarkFlagsMutuallyExclusive("apply", "filename")
	_ = cmd.MarkFlagFilename("filename", "yaml", "yml", "json")
}
