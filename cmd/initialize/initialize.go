// Package initialize is the command `meshctl init`: from a kubeconfig to
// managed clusters, joined meshes and a first policy.
package initialize

import (
	"context"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/meshctl/meshctl/cmd/cmdutil"
	"github.com/meshctl/meshctl/cmd/create"
	"github.com/meshctl/meshctl/cmd/interview"
	"github.com/meshctl/meshctl/engine/snapshot"
	"github.com/meshctl/meshctl/wizards"
)

// Options of the command.
type Options struct {
	Streams *cmdutil.Streams
	Now     func() time.Time
	// Prompter replaces the default one for the streams.
	Prompter wizards.Prompter
	Flags    interview.Flags

	Kubeconfig    string
	MgmtContext   string
	MgmtNamespace string
	// Register are CONTEXT or CONTEXT=NAME.
	Register   []string
	NoRegister bool

	// VirtualMesh are the answers about the VirtualMesh, and MeshName is its name.
	VirtualMesh   wizards.Answers
	MeshName      string
	AllMeshes     bool
	NoVirtualMesh bool

	// Policy is a file with a TrafficPolicy or an AccessPolicy.
	Policy   string
	NoPolicy bool

	Apply  bool
	DryRun bool

	factory *cmdutil.Factory
}

const long = `Sets up meshctl from a kubeconfig: registers clusters with a management
cluster, joins their meshes into a VirtualMesh, and creates a first policy. The
command lists what it finds for every choice, and shows what it would write
before it writes anything.

You can run it again at any time; it shows what is already registered and
joined. Without a terminal, the flags must specify what to do.`

// NewCmd returns the command; runF replaces its run in tests.
func NewCmd(f *cmdutil.Factory, runF func(context.Context, *Options) error) *cobra.Command {
	form := wizards.VirtualMesh()
	opts := &Options{Streams: f.Streams, Now: f.Now, VirtualMesh: wizards.Answers{}, factory: f}
	cmd := &cobra.Command{
		Use:   "init",
		Short: "Register clusters, join their meshes, create a first policy",
		Long:  long,
		Example: `  # Answer questions
  meshctl init

  # Register two clusters and join their meshes, without questions
  meshctl init --context cluster-1 --register cluster-1 --register cluster-2 --all-meshes --trust shared --federate all --apply`,
		Args: cmdutil.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if runF != nil {
				return runF(cmd.Context(), opts)
			}
			return initRun(cmd.Context(), opts)
		},
	}
	cmdutil.ExitCodes(cmd, cmdutil.Exit{Code: cmdutil.ExitFindings, Means: "an object that it creates is or would be INVALID, or has another error; with --dry-run, too"})
	flags := cmd.Flags()
	flags.SortFlags = false
	flags.StringVar(&opts.Kubeconfig, "kubeconfig", "", "kubeconfig `file` (default: $KUBECONFIG, then ~/.kube/config)")
	flags.StringVar(&opts.MgmtContext, wizards.ManagementFlag, "", "`context` of the management cluster")
	flags.StringVar(&opts.MgmtNamespace, "mgmt-namespace", snapshot.DefaultNamespace, "`namespace` of the management plane")
	flags.StringArrayVar(&opts.Register, wizards.RegisterFlag, nil, "register the cluster of this `CONTEXT`, or CONTEXT=NAME to choose its name; may be repeated")
	flags.BoolVar(&opts.NoRegister, "no-register", false, "do not register clusters")
	flags.StringVar(&opts.MeshName, "virtual-mesh", "", "`name` of the VirtualMesh (default: virtual-mesh)")
	create.AddAllMeshesFlag(cmd, &opts.AllMeshes)
	flags.BoolVar(&opts.NoVirtualMesh, "no-virtual-mesh", false, "do not create a VirtualMesh")
	create.AddFormFlags(cmd, form, opts.VirtualMesh)
	flags.StringVar(&opts.Policy, "policy", "", "create the TrafficPolicy or AccessPolicy in this `file`")
	flags.BoolVar(&opts.NoPolicy, "no-policy", false, "do not create a policy")
	flags.BoolVar(&opts.Apply, "apply", false, "apply everything without confirmation")
	flags.BoolVar(&opts.DryRun, "dry-run", false, "check and print everything, without writing anything")
	opts.Flags.AddFlags(cmd)
	cmd.MarkFlagsMutuallyExclusive("apply", "dry-run")
	cmd.MarkFlagsMutuallyExclusive(wizards.RegisterFlag, "no-register")
	cmd.MarkFlagsMutuallyExclusive(create.AllMeshesFlag, "mesh", "no-virtual-mesh")
	cmd.MarkFlagsMutuallyExclusive("virtual-mesh", "no-virtual-mesh")
	cmd.MarkFlagsMutuallyExclusive("policy", "no-policy")
	for _, flag := range []string{wizards.ManagementFlag, wizards.RegisterFlag} {
		// An error here means that the flag does not exist; it was added above.
		_ = cmd.RegisterFlagCompletionFunc(flag, func(*cobra.Command, []string, string) ([]string, cobra.ShellCompDirective) {
			names, _ := cmdutil.Contexts(opts.Kubeconfig)
			return names, cobra.ShellCompDirectiveNoFileComp
		})
	}
	return cmd
}

// missing names the flags that are required if there is no terminal.
func (o *Options) missing() error {
	var flags []string
	if o.MgmtContext == "" {
		flags = append(flags, "--context CONTEXT")
	}
	if len(o.Register) == 0 && !o.NoRegister {
		flags = append(flags, "--register CONTEXT[=NAME] or --no-register")
	}
	if !o.AllMeshes && !o.NoVirtualMesh && len(o.VirtualMesh["mesh"]) == 0 {
		flags = append(flags, "--all-meshes, --mesh NAMESPACE/NAME or --no-virtual-mesh")
	}
	if !o.Apply && !o.DryRun {
		flags = append(flags, "--apply or --dry-run")
	}
	if len(flags) == 0 {
		return nil
	}
	return cmdutil.FlagErrorf("required settings are missing, and there is no terminal to ask for them; set\n  %s", strings.Join(flags, "\n  "))
}
