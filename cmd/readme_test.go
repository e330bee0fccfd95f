package cmd_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/kballard/go-shellquote"
	"github.com/spf13/cobra"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/yaml"

	"github.com/meshctl/meshctl/cmd"
	"github.com/meshctl/meshctl/cmd/cmdutil"
	"github.com/meshctl/meshctl/engine/admission"
)

func readme(t *testing.T) string {
	t.Helper()
	text, err := os.ReadFile("../README.md")
	require.NoError(t, err)
	return string(text)
}

// TestReadmeIsShort: a newcomer reads the README in one go; reference material
// belongs to the help.
func TestReadmeIsShort(t *testing.T) {
	t.Parallel()
	assert.LessOrEqual(t, strings.Count(readme(t), "\n"), 250)
}

// TestManifestsOfReadme: an API server takes the manifests that the README
// shows, and meshctl accepts them without a warning.
func TestManifestsOfReadme(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	for _, name := range []string{"cluster-1", "cluster-2"} {
		in, err := filepath.Abs(cases + "/bookinfo/in/" + name)
		require.NoError(t, err)
		require.NoError(t, os.CopyFS(filepath.Join(dir, name), os.DirFS(in)))
	}
	require.NoError(t, os.Mkdir(filepath.Join(dir, "management"), 0o755))
	_, rest, found := strings.Cut(readme(t), "```yaml\n")
	require.True(t, found, "the README shows no manifest")
	manifest, rest, _ := strings.Cut(rest, "```\n")
	require.NotContains(t, rest, "```yaml", "check the second manifest, too")
	require.NoError(t, os.WriteFile(filepath.Join(dir, "management", "readme.yaml"), []byte(manifest), 0o600))

	object := &unstructured.Unstructured{}
	require.NoError(t, yaml.UnmarshalStrict([]byte(manifest), &object.Object))
	complaints, err := admission.NewChecker().Check(object)
	require.NoError(t, err)
	assert.Empty(t, complaints)
	out, errs, code := run(t.Context(), "translate", dir, "--statuses", "--fail-on", "warning")
	assert.Zero(t, code, errs)
	assert.Contains(t, out, "state: ACCEPTED")
	assert.Contains(t, errs, "no issues")
}

// TestExamplesParse: every command that the README or a help text shows exists,
// with these flags and as many arguments.
func TestExamplesParse(t *testing.T) {
	t.Parallel()
	parse(t, "README.md", readme(t))
	walkCommands(newRoot(), func(c *cobra.Command) { parse(t, c.CommandPath(), c.Example) })
}

func newRoot() *cobra.Command {
	streams, _, _, _ := cmdutil.TestStreams()
	root := cmd.NewCmdRoot(cmdutil.NewFactory(streams))
	root.InitDefaultHelpCmd()
	return root
}

// walkCommands calls f for c and every command below it.
func walkCommands(c *cobra.Command, f func(*cobra.Command)) {
	f(c)
	for _, child := range c.Commands() {
		walkCommands(child, f)
	}
}

// parse checks the indented lines of text that begin with meshctl.
func parse(t *testing.T, where, text string) {
	t.Helper()
	for line := range strings.Lines(strings.ReplaceAll(text, "\\\n", "")) {
		command := strings.TrimSpace(line)
		if !strings.HasPrefix(line, "  ") || !strings.HasPrefix(command, "meshctl ") {
			continue
		}
		command, _, _ = strings.Cut(command, " # ")
		words, err := shellquote.Split(command)
		require.NoError(t, err, "%s: %s", where, command)
		// Parsing writes into a command, so each example gets its own.
		found, args, err := newRoot().Find(words[1:])
		if assert.NoError(t, err, "%s: %s", where, command) && assert.NoError(t, found.ParseFlags(args), "%s: %s", where, command) {
			assert.NoError(t, found.ValidateArgs(found.Flags().Args()), "%s: %s", where, command)
			assert.True(t, found.Runnable(), "%s: %s", where, command)
		}
	}
}
