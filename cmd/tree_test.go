package cmd_test

import (
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"github.com/kballard/go-shellquote"
	"github.com/spf13/cobra"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/meshctl/meshctl/cmd/cmdutil"
	"github.com/meshctl/meshctl/cmd/help"
)

// notReading are the commands whose work is not to answer a question, each with what it does instead.
// All others print their answer as JSON and YAML, which a schema describes.
var notReading = map[string]string{
	"agent": "runs", "serve": "runs", "dashboard": "is a screen", "debug snapshot": "writes a file", "debug bundle": "writes a file", "backup": "writes a file", "init": "writes", "wait": "says when something is the case",
	"cluster release": "says in one sentence what it would let go", "cluster invite": "prints manifests", "cluster revoke": "writes", "cluster approve": "writes", "trust rotate": "writes", "trust pause": "writes", "trust resume": "writes",
	"trust rollback": "writes", "trust accept": "writes", "telemetry enable": "writes", "telemetry disable": "writes", "demo up": "runs", "demo down": "ends what runs", "demo prepare": "builds", "demo kubeconfig": "prints a path for a shell",
	"demo show": "runs another command", "demo break": "writes", "demo repair": "writes", "completion bash": "prints a script", "completion zsh": "prints a script",
	"completion fish": "prints a script", "completion powershell": "prints a script", "help": "is for people",
}

// usual are flags that mean the same in many commands, with the other names that they had in some
// program: no command has those, but for the ones of the original meshctl.
var usual = map[string]map[string]string{
	"dir":        {"from": "top, accesslogs, tap", "folder": "", "directory": "", "manifests": ""},
	"context":    {"mgmt-context": "cluster register, cluster list, cluster deregister, cluster release, cluster invite, cluster approve, cluster revoke, cluster verify, mesh restart", "kube-context": "", "management": ""},
	"all-meshes": {"all": "", "all-mesh": "", "every-mesh": ""},
	"snapshot":   {"archive": "", "zip": ""},
	"output":     {"format": "", "json": ""},
	"yes":        {"assume-yes": "", "no-confirm": "", "confirm": ""},
	"dry-run":    {"preview": "", "simulate": ""},
}

// TestTree walks all commands, and checks what each of them must have.
func TestTree(t *testing.T) {
	t.Parallel()
	scripted := inScripts(t)
	seen := map[string]bool{}
	for _, c := range available(newRoot()) {
		path := path(c)
		seen[path] = true
		t.Run("meshctl "+path, func(t *testing.T) {
			t.Parallel()
			checkHelp(t, c)
			checkFlags(t, path, c)
			checkExits(t, c)
			if !c.HasSubCommands() {
				checkAnswer(t, path, c)
			}
			assert.True(t, scripted[path], "no script of testdata/script runs it")
		})
	}
	assert.Greater(t, len(seen), 50)
	for _, c := range newRoot().Commands() {
		if c.IsAdditionalHelpTopicCommand() {
			assert.True(t, scripted[c.Name()], "no script of testdata/script prints the help topic %s", c.Name())
		}
	}
	for path := range notReading {
		assert.True(t, seen[path], "%s: no such command", path)
	}
}

// available are c and the commands below it that a user sees.
func available(c *cobra.Command) []*cobra.Command {
	out := []*cobra.Command{c}
	for _, child := range c.Commands() {
		if child.IsAvailableCommand() || child.Name() == "help" {
			out = append(out, available(child)...)
		}
	}
	return out
}

// path is the name of a command below meshctl.
func path(c *cobra.Command) string {
	return strings.TrimSpace(strings.TrimPrefix(c.CommandPath(), "meshctl"))
}

// checkHelp: each command says what it is for, in one line and in its help, with an example.
func checkHelp(t *testing.T, c *cobra.Command) {
	t.Helper()
	assert.NotEmpty(t, c.Short)
	assert.LessOrEqual(t, len(c.Short), 72, "the line in the list of commands must fit")
	assert.False(t, strings.HasSuffix(c.Short, "."), "a title, not a sentence")
	assert.Contains(t, c.Example, "  # ", "an example with a comment")
	for line := range strings.Lines(c.Long + "\n" + c.Example) {
		if !strings.HasPrefix(line, "  meshctl") && !strings.HasPrefix(line, "   ") {
			assert.LessOrEqual(t, len(line), 81, "a line of help must fit into 80 columns")
		}
	}
	out, errs, code := run(t.Context(), append(strings.Fields(path(c)), "--help")...)
	assert.Zero(t, code)
	assert.Contains(t, out, "Usage:")
	assert.Empty(t, errs)
}

// checkFlags: what is the same has the same name everywhere.
func checkFlags(t *testing.T, path string, c *cobra.Command) {
	t.Helper()
	for name, others := range usual {
		for other, had := range others {
			if flag := c.Flags().Lookup(other); flag != nil && !flag.Hidden { // another spelling may be accepted
				assert.Contains(t, strings.Split(had, ", "), path, "--%s is called --%s elsewhere", other, name)
			}
		}
	}
}

// checkExits: an exit code that is special to a command is in its help, and in that of the exit codes.
func checkExits(t *testing.T, c *cobra.Command) {
	t.Helper()
	for _, exit := range cmdutil.ExitsOf(c) {
		assert.Regexp(t, `(?m)^  `+strconv.Itoa(exit.Code)+` `, cmdutil.ExitCodesHelp)
		assert.Regexp(t, `(?m)^  `+strconv.Itoa(exit.Code)+` +`+regexp.QuoteMeta(strings.Fields(exit.Means)[0]), c.Long)
	}
	named := strings.Contains(cmdutil.ExitCodesHelp, c.CommandPath()) || c.HasParent() && (path(c.Parent()) == "create" || path(c.Parent()) == "edit")
	if c.HasParent() && !c.HasSubCommands() && named {
		assert.NotEmpty(t, cmdutil.ExitsOf(c), "`meshctl help exit-codes` names it, and its own help says nothing")
	}
}

// checkAnswer: a command that reads prints JSON and YAML, and whatever prints them has a schema.
func checkAnswer(t *testing.T, path string, c *cobra.Command) {
	t.Helper()
	var formats []string
	for _, format := range []string{"json", "yaml"} {
		if flag := c.Flags().Lookup("output"); flag != nil && flag.Value.Type() == "format" && c.Flags().Set("output", format) == nil {
			formats = append(formats, format)
		}
	}
	if notReading[path] != "" {
		assert.Empty(t, formats, "it prints data: take it out of notReading")
		return
	}
	assert.Equal(t, []string{"json", "yaml"}, formats, "an answer is printed as both, or the command is in notReading")
	assert.NotEmpty(t, forms(c), "declare what it prints with OutputFlag.Prints")
	assert.NotNil(t, help.Schema(path), "run make generate")
	assert.Contains(t, c.Flags().Lookup("output").Usage, "meshctl help schema "+path)
}

// forms are those of what a command prints with -o json.
func forms(c *cobra.Command) []cmdutil.Form {
	if flag := c.Flags().Lookup("output"); flag != nil {
		if output, ok := flag.Value.(*cmdutil.OutputFlag); ok {
			return output.Forms()
		}
	}
	return nil
}

// scriptLine is a line of a script that runs meshctl.
var scriptLine = regexp.MustCompile(`(?m)^(?:! )?(?:exec|exits \d+|terminal \S+ \S+) meshctl\b(.*)$`)

// inScripts are the commands that scripts run.
func inScripts(t *testing.T) map[string]bool {
	t.Helper()
	files, err := filepath.Glob("../testdata/script/*.txtar")
	require.NoError(t, err)
	live, err := filepath.Glob("../testdata/script/*/*.txtar")
	require.NoError(t, err)
	out := map[string]bool{}
	for _, file := range append(files, live...) {
		text, err := os.ReadFile(file)
		require.NoError(t, err)
		for _, line := range scriptLine.FindAllStringSubmatch(string(text), -1) {
			words, err := shellquote.Split(strings.ReplaceAll(line[1], "#", ""))
			require.NoError(t, err, "%s: %s", file, line[0])
			if c, _, err := newRoot().Find(words); err == nil && (c.HasParent() || len(words) == 0) {
				out[path(c)] = true
			}
			if len(words) > 1 && words[0] == "help" {
				out[words[1]] = true // a topic
			}
		}
	}
	return out
}
