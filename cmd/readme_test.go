package cmd_test

import (
	"encoding/json"
	"os"
	"path/filepath"
	"regexp"
	"slices"
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
	"github.com/meshctl/meshctl/demo/helper"
	"github.com/meshctl/meshctl/engine/admission"
)

func readme(t *testing.T) string {
	t.Helper()
	return read(t, "../README.md")
}

// contributing is what the README leaves to contributors.
func contributing(t *testing.T) string {
	t.Helper()
	return read(t, "../.github/CONTRIBUTING.md")
}

func read(t *testing.T, file string) string {
	t.Helper()
	text, err := os.ReadFile(file)
	require.NoError(t, err)
	return string(text)
}

// TestReadmeIsShort: a newcomer reads the README in one go; reference material
// belongs to the help, and how meshctl is made to CONTRIBUTING.md.
func TestReadmeIsShort(t *testing.T) {
	t.Parallel()
	assert.LessOrEqual(t, strings.Count(readme(t), "\n"), 120)
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

// TestFirstCommandsOfReadme: what the README prints for a newcomer without a cluster works as printed.
func TestFirstCommandsOfReadme(t *testing.T) {
	t.Parallel()
	_, rest, _ := strings.Cut(readme(t), "```sh\n")
	block, _, _ := strings.Cut(rest, "```\n")
	ran := 0
	for line := range strings.Lines(block) {
		command, _, _ := strings.Cut(line, " # ")
		words, err := shellquote.Split(strings.TrimSpace(command))
		require.NoError(t, err)
		if words[0] != "meshctl" {
			continue
		}
		ran++
		out, errs, code := run(t.Context(), words[1:]...)
		assert.NotEmpty(t, out, line)
		assert.Contains(t, []int{0, 2, 5}, code, "%s: %s", line, errs) // 2: it changes something, 5: it is refused
	}
	assert.Equal(t, 3, ran)
}

// TestMapOfReadme: the files and folders that README.md and CONTRIBUTING.md name
// exist, and no package of the engine is missing in the map of the latter.
func TestMapOfReadme(t *testing.T) {
	t.Parallel()
	text := contributing(t) + readme(t)
	for _, path := range regexp.MustCompile("`((?:engine|cmd|tui|wizards|demo|testdata)/[^`*]*)`").FindAllStringSubmatch(text, -1) {
		_, err := os.Stat("../" + path[1])
		assert.NoError(t, err, "README.md or CONTRIBUTING.md names %s", path[1])
	}
	folders, err := os.ReadDir("../engine")
	require.NoError(t, err)
	tests := []string{"enginetest", "golden", "testdata"}
	for _, folder := range folders {
		if folder.IsDir() && !slices.Contains(tests, folder.Name()) {
			assert.Contains(t, text, "`engine/"+folder.Name(), "CONTRIBUTING.md has no line for this package")
		}
	}
}

// TestVersionsOfReadme: the versions that the README calls tested are those of
// the sandbox, and its version of Go is the one in go.mod.
func TestVersionsOfReadme(t *testing.T) {
	t.Parallel()
	text := readme(t)
	sandbox, err := helper.ReadVersions()
	require.NoError(t, err)
	osm, err := os.ReadFile("../demo/osm/go.mod")
	require.NoError(t, err)
	module, err := os.ReadFile("../go.mod")
	require.NoError(t, err)
	for name, version := range map[string]string{
		"Kubernetes": strings.TrimPrefix(sandbox.Kubernetes, "v"), "Istio": sandbox.Istio,
		"Open Service Mesh": regexp.MustCompile(`openservicemesh/osm v(\S+)`).FindStringSubmatch(string(osm))[1],
	} {
		assert.Regexp(t, `(?m)^\| `+name+`.* \| `+regexp.QuoteMeta(version)+` \|$`, text)
	}
	goVersion := regexp.MustCompile(`(?m)^go (\d+\.\d+)`).FindStringSubmatch(string(module))[1]
	assert.Contains(t, text, "Go "+goVersion+" or later is required")
}

// TestExamplesParse: every command that the README or a help text shows exists,
// with these flags and as many arguments.
func TestExamplesParse(t *testing.T) {
	t.Parallel()
	text := readme(t) + contributing(t)
	for _, inline := range regexp.MustCompile("`(meshctl [^`]*)`").FindAllStringSubmatch(text, -1) {
		text += "    " + inline[1] + "\n"
	}
	parse(t, "README.md", text)
	walkCommands(newRoot(), func(c *cobra.Command) { parse(t, c.CommandPath(), c.Example) })
}

// TestFilesOfGitOps: the files that the help has for GitOps are YAML, and their commands exist.
func TestFilesOfGitOps(t *testing.T) {
	t.Parallel()
	files, err := filepath.Glob("help/gitops/*.yaml")
	require.NoError(t, err)
	require.Len(t, files, 4)
	for _, file := range files {
		text := read(t, file)
		for document := range strings.SplitSeq(text, "\n---\n") {
			var object map[string]any
			require.NoError(t, yaml.UnmarshalStrict([]byte(document), &object), file)
			assert.NotEmpty(t, object, file)
		}
		parse(t, file, regexp.MustCompile(`(?m)( >> .*| \|\| .*)$`).ReplaceAllString(text, ""))
	}
}

// TestFilesOfMonitoring: the files that the help has for Prometheus and Grafana are YAML and JSON.
func TestFilesOfMonitoring(t *testing.T) {
	t.Parallel()
	rules := struct {
		Spec struct {
			Groups []struct{ Rules []map[string]any }
		}
	}{}
	require.NoError(t, yaml.Unmarshal([]byte(read(t, "help/monitoring/rules.yaml")), &rules))
	require.Len(t, rules.Spec.Groups, 1)
	for _, rule := range rules.Spec.Groups[0].Rules {
		for _, field := range []string{"alert", "expr", "for", "labels", "annotations"} {
			assert.NotEmpty(t, rule[field], "%s of %v", field, rule["alert"])
		}
	}
	dashboard := struct{ Panels []map[string]any }{}
	require.NoError(t, json.Unmarshal([]byte(read(t, "help/monitoring/dashboard.json")), &dashboard))
	ids := map[any]bool{}
	for _, panel := range dashboard.Panels {
		assert.NotEmpty(t, panel["targets"], panel["title"])
		assert.False(t, ids[panel["id"]], "two panels are %v", panel["id"])
		ids[panel["id"]] = true
	}
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

// parse checks the lines of text that begin with meshctl, and are indented or in a block of sh.
func parse(t *testing.T, where, text string) {
	t.Helper()
	shell := false
	for line := range strings.Lines(strings.ReplaceAll(text, "\\\n", "")) {
		command := strings.TrimSpace(line)
		if strings.HasPrefix(line, "```") {
			shell = command == "```sh"
		}
		if !strings.HasPrefix(command, "meshctl ") || !strings.HasPrefix(line, "  ") && !shell {
			continue
		}
		command, _, _ = strings.Cut(command, " # ")
		command, _, _ = strings.Cut(command, " > ") // the shell's
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
