// Package create is the command `meshctl create`: policies and VirtualMeshes,
// by questions or by flags.
package create

import (
	"context"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/meshctl/meshctl/cmd/cmdutil"
	"github.com/meshctl/meshctl/cmd/interview"
	"github.com/meshctl/meshctl/engine/admission"
	"github.com/meshctl/meshctl/engine/snapshot"
	"github.com/meshctl/meshctl/wizards"
)

// Options of the command.
type Options struct {
	Streams *cmdutil.Streams
	Now     func() time.Time
	// Prompter replaces the one that fits the streams.
	Prompter wizards.Prompter
	// Checker may be shared by several runs; one is made if it is nil.
	Checker *admission.Checker

	Form      *wizards.Form
	Name      string
	Namespace string
	Answers   wizards.Answers

	// From is a folder to look into instead of the management cluster.
	From          string
	Kube          cmdutil.KubeFlags
	MgmtNamespace string

	Apply  bool
	DryRun bool
	Save   string
	Flags  interview.Flags
	Output cmdutil.OutputFlag

	// Factory makes clients.
	Factory *cmdutil.Factory
	// Asks is true where somebody can be asked.
	Asks    bool
	command string
}

const long = `Makes policies and VirtualMeshes. On a terminal it asks for what the flags leave
open: it offers what was discovered, shows what each answer selects, and at the
end the manifest and what it would change in each cluster. Then it is applied,
saved or edited, and the command that makes the same without questions is shown.

Elsewhere the flags must say all that is needed.`

// NewCmd returns the command; runF replaces the run of every subcommand in tests.
func NewCmd(f *cmdutil.Factory, runF func(context.Context, *Options) error) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "create",
		Short: "Make a policy or a VirtualMesh, by questions or by flags",
		Long:  long,
		Example: `  meshctl create virtualmesh
  meshctl create trafficpolicy
  meshctl create accesspolicy

  # without questions, without a cluster
  meshctl create trafficpolicy slow --from ./manifests --destination reviews.bookinfo.cluster-1 --timeout 3s --dry-run`,
	}
	cmd.AddCommand(
		newCmdKind(f, wizards.VirtualMesh(), "virtualmesh", []string{"vm", "vmesh"}, "Join meshes into one", runF),
		newCmdKind(f, wizards.TrafficPolicy(), "trafficpolicy", []string{"tp"}, "Say how requests to services are treated", runF),
		newCmdKind(f, wizards.AccessPolicy(), "accesspolicy", []string{"ap"}, "Say who may call services", runF),
	)
	return cmd
}

func newCmdKind(f *cmdutil.Factory, form *wizards.Form, use string, aliases []string, short string, runF func(context.Context, *Options) error) *cobra.Command {
	opts := &Options{Streams: f.Streams, Now: f.Now, Form: form, Answers: wizards.Answers{}, Factory: f}
	cmd := &cobra.Command{
		Use: use + " [NAME]", Aliases: aliases, Short: short, Long: short + ".\n\n" + long,
		Args: cmdutil.Args("[NAME]"),
		RunE: func(cmd *cobra.Command, args []string) error {
			if len(args) > 0 {
				opts.Name = args[0]
			}
			opts.command = cmd.CommandPath()
			if cmd.Flags().Changed("output") && !opts.Apply && opts.Save == "" {
				opts.DryRun = true
			}
			if runF != nil {
				return runF(cmd.Context(), opts)
			}
			return createRun(cmd.Context(), opts)
		},
		ValidArgsFunction: cobra.NoFileCompletions,
	}
	opts.addFlags(cmd)
	AddFormFlags(cmd, form, opts.Answers)
	return cmd
}

// AddFormFlags adds the flags of a form to cmd; their values become answers.
func AddFormFlags(cmd *cobra.Command, form *wizards.Form, answers wizards.Answers) {
	for i := range form.Fields {
		field := &form.Fields[i]
		flag := cmd.Flags().VarPF(&value{answers: answers, field: field}, field.Flag, "", field.Usage)
		if field.Value() == "" {
			flag.NoOptDefVal = "true"
		}
	}
	cmd.Flags().Var(&value{answers: answers}, wizards.AnyField, "any field below spec, as PATH=JSON")
}

func (o *Options) addFlags(cmd *cobra.Command) {
	flags := cmd.Flags()
	flags.SortFlags = false
	flags.StringVarP(&o.Namespace, "namespace", "n", "", "`namespace` of the new object (default: that of the management plane)")
	flags.StringVarP(&o.From, "from", "f", "", "look into this `folder`, as for translate, instead of into the management cluster")
	o.Kube.AddFlags(cmd)
	flags.StringVar(&o.MgmtNamespace, "mgmt-namespace", snapshot.DefaultNamespace, "`namespace` of the management plane")
	flags.BoolVar(&o.Apply, "apply", false, "create it in the management cluster, without a last question")
	flags.BoolVar(&o.DryRun, "dry-run", false, "print the manifest, and what it would change; write nothing")
	flags.StringVar(&o.Save, "save", "", "write the manifest to this `file`")
	o.Output.AddFlag(cmd, cmdutil.FormatYAML, cmdutil.FormatJSON)
	o.Flags.AddFlags(cmd)
	cmd.MarkFlagsMutuallyExclusive("apply", "dry-run", "save")
	cmd.MarkFlagsMutuallyExclusive("from", "apply")
	cmd.MarkFlagsMutuallyExclusive("from", "context")
	cmd.MarkFlagsMutuallyExclusive("from", "kubeconfig")
	_ = cmd.MarkFlagDirname("from")
}

// value is a flag whose values become answers as they are.
type value struct {
	answers wizards.Answers
	// field is nil for AnyField.
	field *wizards.Field
}

func (v *value) name() string {
	if v.field == nil {
		return wizards.AnyField
	}
	return v.field.Flag
}

// String is part of pflag.Value.
func (v *value) String() string {
	if v.answers == nil {
		return ""
	}
	return strings.Join(v.answers[v.name()], " ")
}

// Set is part of pflag.Value.
func (v *value) Set(s string) error {
	v.answers[v.name()] = append(v.answers[v.name()], s)
	return nil
}

// Type is part of pflag.Value.
func (v *value) Type() string {
	if v.field == nil {
		return "PATH=JSON"
	}
	return v.field.Value()
}

// IsBoolFlag lets a switch stand alone.
func (v *value) IsBoolFlag() bool { return v.field != nil && v.field.Value() == "" }
