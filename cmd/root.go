package cmd

import (
	"github.com/spf13/cobra"

	"github.com/meshctl/meshctl/cmd/accesslogs"
	"github.com/meshctl/meshctl/cmd/agent"
	"github.com/meshctl/meshctl/cmd/backup"
	"github.com/meshctl/meshctl/cmd/changes"
	"github.com/meshctl/meshctl/cmd/check"
	"github.com/meshctl/meshctl/cmd/cluster"
	"github.com/meshctl/meshctl/cmd/cmdutil"
	"github.com/meshctl/meshctl/cmd/create"
	"github.com/meshctl/meshctl/cmd/dashboard"
	"github.com/meshctl/meshctl/cmd/debug"
	"github.com/meshctl/meshctl/cmd/demo"
	"github.com/meshctl/meshctl/cmd/describe"
	"github.com/meshctl/meshctl/cmd/edit"
	"github.com/meshctl/meshctl/cmd/export"
	"github.com/meshctl/meshctl/cmd/graph"
	"github.com/meshctl/meshctl/cmd/help"
	"github.com/meshctl/meshctl/cmd/initialize"
	"github.com/meshctl/meshctl/cmd/install"
	"github.com/meshctl/meshctl/cmd/mesh"
	"github.com/meshctl/meshctl/cmd/plan"
	"github.com/meshctl/meshctl/cmd/serve"
	"github.com/meshctl/meshctl/cmd/simulate"
	"github.com/meshctl/meshctl/cmd/telemetry"
	"github.com/meshctl/meshctl/cmd/top"
	"github.com/meshctl/meshctl/cmd/translate"
	"github.com/meshctl/meshctl/cmd/trust"
	"github.com/meshctl/meshctl/cmd/version"
	"github.com/meshctl/meshctl/cmd/wait"
	"github.com/meshctl/meshctl/cmd/why"
)

const rootLong = `meshctl manages many service meshes in many clusters as one: it discovers them,
joins them into a VirtualMesh, makes services reachable across clusters, and
translates TrafficPolicies and AccessPolicies into the configuration of each
mesh.

Marks are ASCII, and nothing moves, if ACCESSIBLE is set, TERM is dumb or the
locale is not UTF-8. NO_COLOR leaves out colours, CLICOLOR_FORCE=1 asks for
them.`

const rootExample = `  # Look at a recorded fleet, without any cluster
  meshctl demo show

  # Try meshctl on this machine; requires only Go
  meshctl demo up

  # Show which policies apply to a service, and who may call it
  meshctl describe destination reviews-bookinfo-cluster-1

  # Print what meshctl would write for the manifests in a folder
  meshctl translate --dir ./manifests`

// NewCmdRoot returns the tree of commands.
func NewCmdRoot(f *cmdutil.Factory) *cobra.Command {
	cmd := &cobra.Command{
		Use:           "meshctl",
		Short:         "Manage many service meshes in many clusters as one",
		Long:          rootLong,
		Example:       rootExample,
		Version:       f.Version.Version,
		SilenceErrors: true,
		SilenceUsage:  true,
		// Without a Run, cobra would answer an unknown command with the help text.
		Args: unknownCommand,
		RunE: func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	cmd.SetIn(f.Streams.In)
	cmd.SetOut(f.Streams.Out)
	cmd.SetErr(f.Streams.Err)
	// Defined here, or cobra would take -v for it.
	cmd.Flags().Bool("version", false, "print the version")
	cmd.PersistentFlags().BoolVar(&f.Demo.Use, "demo", false, "use the clusters of the demo that runs on this machine")
	cmd.SetVersionTemplate("meshctl {{.Version}}\n")
	cmd.SetFlagErrorFunc(cmdutil.UnknownFlag)
	cmd.AddGroup(
		&cobra.Group{ID: "try", Title: "Try it:"},
		&cobra.Group{ID: "inspect", Title: "Inspect:"},
		&cobra.Group{ID: "manage", Title: "Manage:"},
	)
	add := func(group string, children ...*cobra.Command) {
		for _, child := range children {
			child.GroupID = group
			cmd.AddCommand(child)
		}
	}
	add("try", demo.NewCmd(f, nil))
	add("inspect", dashboard.NewCmd(f, nil), describe.NewCmd(f, nil), why.NewCmd(f, nil), check.NewCmd(f, nil), changes.NewCmd(f, nil), top.NewCmd(f, nil), accesslogs.NewCmd(f, nil), accesslogs.NewTapCmd(f, nil), plan.NewCmd(f, nil), simulate.NewCmd(f, nil), graph.NewCmd(f, nil), translate.NewCmd(f, nil), wait.NewCmd(f, nil), export.NewCmd(f, nil), debug.NewCmd(f, nil))
	add("manage", initialize.NewCmd(f, nil), install.NewCmd(f, nil), install.NewUpgradeCmd(f, nil), install.NewUninstallCmd(f, nil), backup.NewCmd(f, nil), backup.NewRestoreCmd(f, nil), cluster.NewCmd(f), mesh.NewCmd(f), trust.NewCmd(f), telemetry.NewCmd(f), create.NewCmd(f, nil), edit.NewCmd(f, nil), serve.NewCmd(f, nil), agent.NewCmd(f, nil))
	add("", version.NewCmd(f, nil))
	add("", help.NewTopics()...)
	cmd.SetHelpCommand(help.NewCmd(f))
	help.NameSchemas(cmd)
	groupsRefuseUnknown(cmd)
	cmdutil.AlsoOfManagement(cmd, "agent", "demo")
	completeInBash(cmd)
	return cmd
}

// groupsRefuseUnknown makes every command that only groups others print its
// help when called alone, and reject unknown words.
func groupsRefuseUnknown(cmd *cobra.Command) {
	for _, child := range cmd.Commands() {
		groupsRefuseUnknown(child)
		if child.HasSubCommands() && !child.Runnable() {
			child.Args = unknownCommand
			child.RunE = func(cmd *cobra.Command, _ []string) error { return cmd.Help() }
		}
	}
}

// unknownCommand rejects a word that is not a subcommand.
func unknownCommand(cmd *cobra.Command, args []string) error {
	if len(args) == 0 {
		return nil
	}
	return cmdutil.UnknownCommand(cmd, args[0], false)
}
