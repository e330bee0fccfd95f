// Package create is the command `meshctl create`: policies, VirtualMeshes and Roles,
// by questions or by flags.
package create

import (
	"context"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

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
	// Prompter replaces the default one for the streams.
	Prompter wizards.Prompter
	// Checker may be shared by several runs; one is made if it is nil.
	Checker *admission.Checker

	// Verb is the command after meshctl; create if empty.
	Verb      string
	Form      *wizards.Form
	Name      string
	Namespace string
	Answers   wizards.Answers
	// AllMeshes are those that are in no VirtualMesh.
	AllMeshes bool

	// Dir is a folder to read instead of the management cluster.
	Dir           string
	Kube          cmdutil.KubeFlags
	MgmtNamespace string

	Apply  bool
	DryRun bool
	Save   string
	Flags  interview.Flags
	Output cmdutil.OutputFlag

	// Factory makes clients.
	Factory *cmdutil.Factory
	// Asks is true if there is a terminal to ask on.
	Asks bool
	// Leave: esc at the first question ends Run with wizards.ErrBack.
	Leave bool
	// Within is the step of the wizard that the questions are a part of; nil if they stand alone.
	Within *wizards.Step
	// Finding is cmdutil.ErrFindings after a Run whose object is not in force as a whole.
	Finding error
	command string
}

const long = `On a terminal, the command asks for what the flags leave out. It lists what was
discovered, shows what each answer selects, and finally the manifest and what
it would change in each cluster. You can then apply, save or edit the manifest.
The equivalent command without questions is printed at the end.

Without a terminal, the flags must specify everything that is required.`

// NewCmd returns the command; runF replaces the run of every subcommand in tests.
func NewCmd(f *cmdutil.Factory, runF func(context.Context, *Options) error) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "create",
		Short: "Create a policy, VirtualMesh or Role, interactively or with flags",
		Long:  "Creates policies, VirtualMeshes, Roles and RoleBindings.\n\n" + long,
		Example: `  # Answer questions
  meshctl create virtualmesh

  # Preview a policy for the manifests in a folder, without questions
  meshctl create trafficpolicy slow --dir ./manifests --destination reviews.bookinfo.cluster-1 --timeout 3s --dry-run`,
	}
	for _, kind := range Kinds() {
		cmd.AddCommand(newCmdKind(f, kind, runF))
	}
	return cmd
}

func newCmdKind(f *cmdutil.Factory, kind KindCommand, runF func(context.Context, *Options) error) *cobra.Command {
	form, short := kind.Form, kind.Short
	opts := &Options{Streams: f.Streams, Now: f.Now, Form: form, Answers: wizards.Answers{}, Factory: f}
	cmd := &cobra.Command{
		Use: kind.Use + " [NAME]", Aliases: kind.Aliases, Short: short, Long: short + ".\n\n" + long, Example: kind.Example,
		Args: cmdutil.Args("[NAME]"),
		RunE: func(cmd *cobra.Command, args []string) error {
			if len(args) > 0 {
				opts.Name = args[0]
			}
			opts.command = cmd.CommandPath()
			opts.PrintsOnly(cmd)
			if runF != nil {
				return runF(cmd.Context(), opts)
			}
			return createRun(cmd.Context(), opts)
		},
		ValidArgsFunction: cobra.NoFileCompletions,
	}
	opts.AddFlags(cmd, FlagUsages{
		Namespace: "`namespace` of the new object (default: the namespace of the management plane)",
		Apply:     "create the object in the management cluster without confirmation",
		Save:      "write the manifest to this `file`",
	})
	joins := form.Kind == snapshot.VirtualMesh
	if joins {
		AddAllMeshesFlag(cmd, &opts.AllMeshes)
	}
	AddFormFlags(cmd, form, opts.Answers)
	opts.AddCompletions(cmd)
	if joins {
		cmd.MarkFlagsMutuallyExclusive(AllMeshesFlag, meshFlag)
	}
	return cmd
}

// AllMeshesFlag joins all meshes instead of those of meshFlag.
const (
	AllMeshesFlag = "all-meshes"
	meshFlag      = "mesh"
)

// AddAllMeshesFlag adds AllMeshesFlag to cmd.
func AddAllMeshesFlag(cmd *cobra.Command, all *bool) {
	cmd.Flags().BoolVar(all, AllMeshesFlag, false, "join all discovered meshes that are in no VirtualMesh")
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
	cmd.Flags().Var(&value{answers: answers}, wizards.AnyField, "set any field below spec, as PATH=JSON; may be repeated")
}

// FlagUsages are what differs in the usages of the flags of AddFlags.
type FlagUsages struct{ Namespace, Apply, Save string }

// AddFlags adds the flags that say what to read, and what to do with the manifest; more are between these.
func (o *Options) AddFlags(cmd *cobra.Command, usages FlagUsages, more ...func(*pflag.FlagSet)) {
	cmdutil.ExitCodes(cmd, cmdutil.Exit{
		Code: cmdutil.ExitFindings, Means: "the object is or would be INVALID, or has another error, whether it is applied, saved or, with --dry-run, only printed",
	})
	flags := cmd.Flags()
	flags.SortFlags = false
	flags.StringVarP(&o.Namespace, "namespace", "n", "", usages.Namespace)
	flags.StringVar(&o.Dir, "dir", "", "read the manifests in this `folder` instead of a cluster")
	o.Kube.AddFlags(cmd)
	flags.StringVar(&o.MgmtNamespace, "mgmt-namespace", snapshot.DefaultNamespace, "`namespace` of the management plane")
	for _, add := range more {
		add(flags)
	}
	flags.BoolVar(&o.Apply, "apply", false, usages.Apply)
	flags.BoolVar(&o.DryRun, "dry-run", false, "print the manifest and what it would change, without writing anything")
	flags.StringVar(&o.Save, "save", "", usages.Save)
	o.Output.AddOnly(cmd, cmdutil.FormatYAML, cmdutil.FormatJSON)
	o.Output.Prints(cmdutil.Form{Value: cmdutil.Manifest{}})
	o.Flags.AddFlags(cmd)
	cmd.MarkFlagsMutuallyExclusive("apply", "dry-run", "save")
	for _, cluster := range []string{"apply", "context", "kubeconfig"} {
		cmd.MarkFlagsMutuallyExclusive("dir", cluster)
	}
	_ = cmd.MarkFlagDirname("dir")
}

// PrintsOnly takes --output without another decision for --dry-run.
func (o *Options) PrintsOnly(cmd *cobra.Command) {
	if cmd.Flags().Changed("output") && !o.Apply && o.Save == "" {
		o.DryRun = true
	}
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

// IsBoolFlag makes the value of a boolean flag optional.
func (v *value) IsBoolFlag() bool { return v.field != nil && v.field.Value() == "" }
