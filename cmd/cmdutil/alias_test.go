package cmdutil

import (
	"strings"
	"testing"

	"github.com/spf13/cobra"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// TestAlsoOfManagement: both names are taken, one is shown, and two different values are an error.
func TestAlsoOfManagement(t *testing.T) {
	t.Parallel()
	try := func(words ...string) (values [4]string, helped string, err error) {
		root := &cobra.Command{Use: "root", SilenceErrors: true, SilenceUsage: true}
		for i, names := range [][2]string{{"context", "namespace"}, {"mgmt-context", "mgmt-namespace"}} {
			cmd := &cobra.Command{Use: []string{"short", "long"}[i], Run: func(*cobra.Command, []string) {}}
			cmd.Flags().StringVar(&values[2*i], names[0], "", "")
			cmd.Flags().StringVar(&values[2*i+1], names[1], "default", "")
			cmd.Flags().String("dir", "", "")
			cmd.MarkFlagsMutuallyExclusive("dir", names[0])
			root.AddCommand(cmd)
		}
		AlsoOfManagement(root)
		root.SetArgs(words)
		err = root.Execute()
		return values, root.Commands()[1].Flags().FlagUsages(), err
	}
	for line, want := range map[string][4]string{
		"short --context a --namespace b":                     {"a", "b", "", "default"},
		"short --mgmt-context a --mgmt-namespace b":           {"a", "b", "", "default"},
		"short --mgmt-context a --context a":                  {"a", "default", "", "default"},
		"short --context a --context b":                       {"b", "default", "", "default"},
		"long --context a -n b":                               {"", "default", "a", "b"},
		"long --context a --mgmt-context a --namespace=b -nc": {"", "default", "a", "c"},
	} {
		got, help, err := try(strings.Fields(line)...)
		require.NoError(t, err, line)
		assert.Equal(t, want, got, line)
		assert.NotContains(t, help, "mgmt")
	}
	for line, want := range map[string]string{
		"short --context a --mgmt-context b":    `it is the same as --context, which is "a"; leave one of them out`,
		"long --context a --mgmt-context b":     `it is the same as --context, which is "a"`,
		"long --mgmt-namespace a --namespace b": `it is the same as --mgmt-namespace, which is "a"`,
		"short --dir d --mgmt-context b":        "none of the others can be",
		"long --dir d --context b":              "none of the others can be",
	} {
		_, _, err := try(strings.Fields(line)...)
		assert.ErrorContains(t, err, want, line)
	}
}
