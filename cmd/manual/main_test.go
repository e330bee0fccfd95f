package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/meshctl/meshctl/cmd"
	"github.com/meshctl/meshctl/cmd/cmdutil"
)

func newRoot() *cobra.Command {
	streams, _, _, _ := cmdutil.TestStreams()
	return cmd.NewCmdRoot(cmdutil.NewFactory(streams))
}

// available are all commands that --help lists, with the root.
func available(c *cobra.Command) []*cobra.Command {
	all := []*cobra.Command{c}
	for _, child := range c.Commands() {
		if child.IsAvailableCommand() {
			all = append(all, available(child)...)
		}
	}
	return all
}

func TestEveryCommandHasAPage(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	require.NoError(t, run([]string{dir}))
	root := newRoot()
	commands := available(root)
	require.Greater(t, len(commands), 20)
	for _, c := range commands {
		name := strings.ReplaceAll(c.CommandPath(), " ", "-")
		page, err := os.ReadFile(filepath.Join(dir, "man", "man1", name+".1"))
		if !assert.NoError(t, err) {
			continue
		}
		text := strings.ReplaceAll(string(page), `\-`, "-")
		assert.Contains(t, text, `"MESHCTL`, name)
		assert.NotContains(t, text, "Auto generated", name)
		// The page has the flags.
		c.LocalFlags().VisitAll(func(f *pflag.Flag) {
			if !f.Hidden && f.Deprecated == "" {
				assert.Contains(t, text, "--"+f.Name, "%s --%s", name, f.Name)
			}
		})
	}
}

func TestEveryShellHasACompletion(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	require.NoError(t, run([]string{dir}))
	for name, start := range map[string]string{
		"meshctl.bash": "# bash completion V2 for meshctl",
		"_meshctl":     "#compdef meshctl",
		"meshctl.fish": "# fish completion for meshctl",
		"meshctl.ps1":  "# powershell completion for meshctl",
	} {
		text, err := os.ReadFile(filepath.Join(dir, "completions", name))
		require.NoError(t, err)
		assert.True(t, strings.HasPrefix(string(text), start), "%s begins with %.60s", name, text)
		// The scripts ask the binary what comes next.
		assert.Contains(t, string(text), "__complete", name)
	}
}

// TestCompletionKnowsEveryCommand asks what the scripts of the shells ask.
func TestCompletionKnowsEveryCommand(t *testing.T) {
	t.Parallel()
	for _, parent := range available(newRoot()) {
		root := newRoot()
		var out strings.Builder
		root.SetOut(&out)
		args := append([]string{cobra.ShellCompRequestCmd}, strings.Fields(parent.CommandPath())[1:]...)
		root.SetArgs(append(args, ""))
		require.NoError(t, root.Execute(), parent.CommandPath())
		for _, child := range parent.Commands() {
			if child.IsAvailableCommand() {
				assert.Contains(t, out.String(), child.Name()+"\t", parent.CommandPath())
			}
		}
	}
}

func TestSameCommandsSameBytes(t *testing.T) {
	t.Parallel()
	first, second := t.TempDir(), t.TempDir()
	require.NoError(t, run([]string{first}))
	require.NoError(t, run([]string{second}))
	files := 0
	require.NoError(t, filepath.WalkDir(first, func(path string, entry os.DirEntry, err error) error {
		if err != nil || entry.IsDir() {
			return err
		}
		files++
		rel, err := filepath.Rel(first, path)
		require.NoError(t, err)
		want, err := os.ReadFile(path)
		require.NoError(t, err)
		got, err := os.ReadFile(filepath.Join(second, rel))
		require.NoError(t, err)
		assert.Equal(t, string(want), string(got), rel)
		return nil
	}))
	assert.Greater(t, files, 20)
}

func TestRunNeedsAFolder(t *testing.T) {
	t.Parallel()
	require.EqualError(t, run(nil), "manual: name the folder to write to, and nothing else")
}
