package cmd_test

import (
	"github.com/spf13/cobra"

	"github.com/meshctl/meshctl/cmd/cmdutil"
)

// forms are those of what a command prints with -o json.
func forms(c *cobra.Command) []cmdutil.Form {
	if flag := c.Flags().Lookup("output"); flag != nil {
		if output, ok := flag.Value.(*cmdutil.OutputFlag); ok {
			return output.Forms()
		}
	}
	return nil
}
