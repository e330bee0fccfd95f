//go:build unix

package cmd_test

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"syscall"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/meshctl/meshctl/cmd/terminaltest"
	"github.com/meshctl/meshctl/engine/golden"
)

// meshctl runs the whole program in a terminal, in a folder that has the case
// bookinfo as manifests; env is added to the environment.
func meshctl(t *testing.T, cols, rows int, env []string, args ...string) (x *terminaltest.Terminal, dir string) {
	t.Helper()
	self, err := os.Executable()
	require.NoError(t, err)
	bookinfo, err := filepath.Abs("../testdata/translate/bookinfo/in")
	require.NoError(t, err)
	dir = t.TempDir()
	require.NoError(t, os.Symlink(bookinfo, filepath.Join(dir, "manifests")))
	// TestMain takes the test binary of that name for meshctl.
	cmd := exec.Command(self)
	cmd.Args = append([]string{"meshctl"}, args...)
	cmd.Dir = dir
	cmd.Env = []string{"ACCESSIBLE=", "TMPDIR=" + dir, "KUBECONFIG=" + filepath.Join(dir, "none")}
	cmd.Env = append(cmd.Env, env...)
	return terminaltest.Start(t, cmd, cols, rows), dir
}

// TestGoldenSession compares a whole session of questions, as a terminal shows
// it, with testdata/create-session.txt.
func TestGoldenSession(t *testing.T) {
	t.Parallel()
	x, dir := meshctl(t, 118, 200, nil, "create", "trafficpolicy", "--dir", "manifests")
	x.Answer("Requests to which services?", terminaltest.Enter)
	x.Answer("Which services?", "ratings.bookinfo.cluster-2", terminaltest.Space, terminaltest.Enter)
	x.Answer("Requests from which workloads?", terminaltest.Enter)
	x.Answer("Which requests?", terminaltest.Enter)
	x.Answer("What should happen to these requests?", "timeout", terminaltest.Space, terminaltest.Enter)
	x.Answer("How long may a request take", "soon", terminaltest.Enter)
	x.Answer("must be a duration", "\x7f\x7f\x7f\x7f3s", terminaltest.Enter)
	x.Answer("Name of the object?", terminaltest.Enter)
	x.Answer("What next?", terminaltest.Enter)
	x.Answer("To which file?", terminaltest.Enter)
	x.Ends(0)
	assert.FileExists(t, filepath.Join(dir, "ratings-traffic.yaml"))
	shown := "$ meshctl create trafficpolicy --dir manifests\n"
	for line := range strings.Lines(x.String()) {
		if strings.Contains(line, "type to filter") {
			continue // a list that was answered while it was being painted
		}
		shown += strings.TrimRight(line, " \n") + "\n"
	}
	golden.File(t, "testdata/create-session.txt", shown)
}

// Whatever ends a question, the terminal is as before, and no answer is lost.
func TestATerminalIsLeftAsItWas(t *testing.T) {
	t.Parallel()
	for name, end := range map[string]func(*terminaltest.Terminal, string){
		"ctrl-c":  func(x *terminaltest.Terminal, question string) { x.Answer(question, terminaltest.CtrlC) },
		"SIGTERM": func(x *terminaltest.Terminal, question string) { x.Answer(question); x.Signal(syscall.SIGTERM) },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			x, _ := meshctl(t, 100, 40, nil, "create", "tp", "--dir", "manifests")
			x.Answer("Requests to which services?", terminaltest.Enter)
			end(x, "Which services?") // several of a list
			x.Ends(130)
			assert.Contains(t, x.String(), "Interrupted")
			file := regexp.MustCompile(`--recover (\S+)`).FindStringSubmatch(x.Raw())
			require.Len(t, file, 2, x)

			for _, question := range []string{"Which services?", "Requests from which workloads?"} { // one of a list
				x, _ = meshctl(t, 100, 40, nil, "create", "tp", "--dir", "manifests", "--recover", file[1])
				if question != "Which services?" {
					x.Answer("Which services?", "ratings.bookinfo.cluster-2", terminaltest.Space, terminaltest.Enter)
				}
				end(x, question)
				x.Ends(130)
			}

			x, _ = meshctl(t, 100, 40, nil, "create", "ap", "x", "--dir", "manifests", "--action", "allow", "--all-sources", "--all-destinations")
			end(x, "Only with which HTTP methods?") // a line
			x.Ends(130)
			assert.Contains(t, x.String(), "--recover")
		})
	}
}

// TestEscGoesBack on a terminal: from a list, from a list of several and from a line; arrows, which
// begin as esc does, do not.
func TestEscGoesBack(t *testing.T) {
	t.Parallel()
	const enter, esc = terminaltest.Enter, terminaltest.Esc
	x, dir := meshctl(t, 118, 60, nil, "create", "tp", "--dir", "manifests")
	x.Answer("esc: back", esc)
	x.Answer("This is the first question; ctrl-c cancels.", enter)
	x.Answer("esc: back", "ratings.bookinfo.cluster-2", terminaltest.Space, enter)
	x.Answer("Requests from which workloads?", terminaltest.Down, esc)
	x.Sees("Requests from which workloads? (back)")
	x.Answer("[x]  ratings.bookinfo.cluster-2", esc)
	x.Sees("Which services? (back)")
	x.Answer("Requests to which services?", enter)
	x.Answer("[x]  ratings.bookinfo.cluster-2", enter)
	x.Answer("Requests from which workloads?", enter)
	x.Answer("Which requests?", enter)
	x.Answer("What should happen to these requests?", "timeout", terminaltest.Space, enter)
	x.Answer("How long may a request take", "7s", enter)
	x.Answer("Name of the object?", "it", esc)
	x.Sees("Name of the object? (back)")
	x.Answer("(7s)", enter)
	x.Answer("Name of the object?", enter)
	x.Answer("What next?", enter)
	x.Answer("To which file?", enter)
	x.Ends(0)
	manifest, err := os.ReadFile(filepath.Join(dir, "ratings-traffic.yaml"))
	require.NoError(t, err)
	assert.Contains(t, string(manifest), "requestTimeout: 7s")
}

// On a terminal of a few lines the wizard can be used all the same.
func TestAWizardInATinyTerminal(t *testing.T) {
	t.Parallel()
	x, dir := meshctl(t, 40, 8, nil, "create", "ap", "--dir", "manifests", "--all-sources")
	x.Answer("What should it do?", terminaltest.Enter)
	x.Answer("Requests to which", terminaltest.Enter)
	x.Answer("Which services?", "cluster-2", terminaltest.Down, terminaltest.Space, terminaltest.Enter)
	x.Answer("methods?", "GET", terminaltest.Enter)
	x.Answer("paths?", terminaltest.Enter)
	x.Answer("ports", terminaltest.Enter)
	x.Answer("Name of the object?", terminaltest.Enter)
	x.Answer("What next?", terminaltest.Enter)
	x.Answer("To which file?", "\x15", terminaltest.Enter)
	x.Ends(0)
	files, err := filepath.Glob(filepath.Join(dir, "*.yaml"))
	require.NoError(t, err)
	assert.Len(t, files, 1)
}

// TestStepsOnATerminal: what the wizard makes, and one line on where one is, which fits and is there once; also where one
// goes back, and where an answer is changed.
func TestStepsOnATerminal(t *testing.T) {
	t.Parallel()
	const enter, space = terminaltest.Enter, terminaltest.Space
	for _, size := range [][2]int{{40, 10}, {60, 15}, {80, 24}} {
		t.Run(fmt.Sprint(size), func(t *testing.T) {
			t.Parallel()
			x, dir := meshctl(t, size[0], size[1], nil, "create", "tp", "--dir", "manifests")
			at := func(question, step string) {
				t.Helper()
				x.Sees("\n"+step+" ", "? "+question)
				assert.Equal(t, 1, strings.Count(x.String(), " of 6 · "), x)
			}
			x.Sees("New TrafficPolicy")
			at("Requests to which", "1 of 6 · Destinations")
			x.Answer("esc: back", enter)
			at("Which services?", "1 of 6 · Destinations")
			x.Answer("esc: back", "zzz")
			x.Sees("no match for zzz")
			x.Types("\x7f\x7f\x7fratings.bookinfo.cluster-2" + space + enter)
			at("Requests from", "2 of 6 · Callers")
			x.Answer("esc: back", terminaltest.Esc)
			at("Which services?  ", "1 of 6 · Destinations")
			x.Answer("esc: back", enter)
			at("Requests from which workloads?  ", "2 of 6 · Callers")
			x.Answer("esc: back", enter)
			at("Which requests?", "3 of 6 · Requests")
			x.Answer("esc: back", enter)
			at("What should happen", "4 of 6 · Actions")
			x.Answer("esc: back", "timeout", space, enter)
			at("How long", "4 of 6 · Actions")
			x.Answer("esc: back", "soon", enter)
			x.Answer("must be a duration", "\x157s", enter)
			at("Name of the object?", "5 of 6 · Name")
			x.Answer("esc: back", "it", enter)
			at("What next?", "6 of 6 · Review")
			x.Answer("esc: back", "change an answer", enter)
			at("Which answer do you want", "6 of 6 · Review")
			x.Answer("esc: back", "Actions · How long", enter)
			at("How long", "4 of 6 · Actions")
			x.Answer("(7s)", "8s", enter)
			at("What next?", "6 of 6 · Review")
			x.Answer("esc: back", enter)
			x.Answer("To which file?", enter)
			x.Ends(0)
			manifest, err := os.ReadFile(filepath.Join(dir, "it.yaml"))
			require.NoError(t, err)
			assert.Contains(t, string(manifest), "requestTimeout: 8s")
		})
	}
}

// A dumb terminal, and a screen reader, get lines and numbers.
func TestAWizardWithoutACursor(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct{ env, args []string }{
		"TERM=dumb":  {[]string{"TERM=dumb"}, nil},
		"ACCESSIBLE": {[]string{"ACCESSIBLE=1"}, nil},
		"--plain":    {nil, []string{"--plain"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			x, _ := meshctl(t, 100, 60, c.env, append([]string{"create", "vm", "--dir", "manifests", "--trust", "shared"}, c.args...)...)
			x.AnswerLine("Which meshes do you want to join? [spec.meshes]", "1,2")
			x.AnswerLine("Which services should be reachable from other meshes?", "3")
			x.AnswerLine("May all workloads call each other?", "\x1b")
			x.AnswerLine("Number (empty for 3; esc and enter: back)", "1")
			x.AnswerLine("May all workloads call each other?", "")
			x.AnswerLine("Name of the object?", "joined")
			x.AnswerLine("What next?", "5")
			x.Ends(0)
			assert.Contains(t, x.String(), "Nothing was written.")
			assert.NotContains(t, x.Raw(), "\x1b[", "nothing moves the cursor")
			assert.Equal(t, []string{
				"New VirtualMesh", "Step 1 of 6: Meshes.", "Step 3 of 6: Federation.", "Step 4 of 6: Access.", "Step 3 of 6: Federation.",
				"Step 4 of 6: Access.", "Step 5 of 6: Name.", "Step 6 of 6: Review.",
			}, regexp.MustCompile(`New \w+|Step \d of \d: \w+\.`).FindAllString(x.Raw(), -1))
			assert.Regexp(t, `Step 6 of 6: Review\.\s+apiVersion: `, x.Raw(), "the manifest belongs to it")
		})
	}
}

// TestStartingAsksTheTerminalNothing: a command that has no use for the terminal
// writes its answer, and no escape sequence. Some terminals never answer what
// libraries ask as the program starts, and others answer after it has ended.
func TestStartingAsksTheTerminalNothing(t *testing.T) {
	t.Parallel()
	x, _ := meshctl(t, 118, 40, nil, "version", "--client")
	x.Ends(0)
	assert.Regexp(t, `^Version [^\x1b]+$`, strings.TrimSuffix(x.Raw(), terminaltest.EndMark))
}
