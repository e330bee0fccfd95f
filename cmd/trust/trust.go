// Package trust is the command `meshctl trust`: what the members of a VirtualMesh trust, and
// the exchange of their common root.
//
//	trust.go   the command
//	show.go    meshctl trust show
//	change.go  meshctl trust rotate, pause, resume, rollback and accept: reading and writing
//	decide.go  which annotations they set, as a function of the VirtualMesh
//	accept.go  which claims count
//	ask.go     asking before something starts
//	wait.go    --wait
package trust

import (
	"github.com/spf13/cobra"

	"github.com/meshctl/meshctl/cmd/cmdutil"
)

const long = `Shows what the members of a VirtualMesh trust, and exchanges their common root.

A rotation never breaks a connection: all members trust the new root before one
of them uses it, and they stop trusting the old root when none uses it any more.
"meshctl serve" and the agents of the members do the work; these commands only
set annotations of the VirtualMesh.

What members say of their trust domains, and roots that nobody here made, count
only when an administrator accepts them.`

// NewCmd returns the command.
func NewCmd(f *cmdutil.Factory) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "trust",
		Short: "Show the common trust of meshes, and exchange its root",
		Long:  long,
		Example: `  # Show which roots the members of all VirtualMeshes trust
  meshctl trust show

  # Exchange the root of a VirtualMesh, and wait until that is complete
  meshctl trust rotate virtual-mesh --wait`,
	}
	cmd.AddCommand(newCmdShow(f, nil))
	for _, a := range actions() {
		cmd.AddCommand(newCmdChange(f, a, nil))
	}
	return cmd
}
