package dashboard

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"testing"

	"github.com/spf13/cobra"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/meshctl/meshctl/cmd/cmdutil"
	"github.com/meshctl/meshctl/cmd/terminaltest"
	"github.com/meshctl/meshctl/demo/sandboxtest"
	"github.com/meshctl/meshctl/tui"
)

// panicsWith makes the test binary this command with a source that panics once
// something is written to the named pipe of that name.
const panicsWith = "MESHCTL_DASHBOARD_PANICS_WITH"

func TestMain(m *testing.M) {
	if os.Getenv(panicsWith) != "" {
		os.Exit(panics(os.Args[1:]))
	}
	os.Exit(m.Run())
}

// program is a run of meshctl dashboard.
func program(t *testing.T, args ...string) *exec.Cmd {
	t.Helper()
	return exec.CommandContext(t.Context(), sandboxtest.Meshctl(t), append([]string{"dashboard"}, args...)...)
}

// panics is meshctl with this command only, whose source fails after the first latest.
func panics(args []string) int {
	f := cmdutil.NewFactory(cmdutil.System())
	root := &cobra.Command{Use: "meshctl", SilenceErrors: true, SilenceUsage: true}
	root.AddCommand(NewCmd(f, func(ctx context.Context, o *Options) error {
		source, err := newFolder(o.Dir, f.Now)
		if err != nil {
			return err
		}
		o.source = &panicking{Source: source}
		return run(ctx, o)
	}))
	root.SetArgs(append([]string{"dashboard"}, args...))
	err := root.Execute()
	if err != nil {
		_, _ = f.Streams.Err.Write([]byte(err.Error() + "\n"))
	}
	return cmdutil.ExitCode(err)
}

type panicking struct {
	tui.Source
	sent bool
}

func (p *panicking) Next(ctx context.Context) (*tui.Update, error) {
	if p.sent {
		_, err := os.ReadFile(os.Getenv(panicsWith))
		panic(fmt.Sprint("planted ", err))
	}
	p.sent = true
	return p.Source.Next(ctx)
}

const bookinfo = "../../testdata/translate/bookinfo/in"

// ended waits for the end and looks whether the terminal is as it was.
func ended(t *testing.T, x *terminaltest.Terminal, code int) {
	t.Helper()
	x.Ends(code)
	x.Restored()
	assert.NotContains(t, x.Raw(), "\x1b]11;?", "nobody asks the terminal for its colour")
}

func TestScreen(t *testing.T) {
	t.Parallel()
	x := terminaltest.Start(t, program(t, bookinfo), 100, 30)
	x.Sees("[1 Fleet]", "istiod-istio-system-cluster-1", "Fleet [2]")
	x.Types("2")
	x.Sees("[2 Dest]", "productpage", "Destinations [8]")
	x.Types("/reviews\r")
	x.Sees("Destinations [2 of 8] /reviews")
	x.Misses("productpage")
	x.Types("\r")
	x.Sees("Destination gloo-mesh/reviews-bookinfo-cluster-1", "reviews-shift", "Federation")
	x.Types("y")
	x.Sees("YAML of Destination", "kind: Destination")
	x.Types("\x1b")
	x.Sees("Destination gloo-mesh/reviews-bookinfo-cluster-1", "Federation")
	x.Resize(160, 50)
	x.Types("G")
	x.Sees("Endpoints that are ready", "patient")
	x.Resize(60, 15)
	x.Sees("── Destination gloo-mesh/reviews-", "of ")
	x.Resize(12, 5)
	x.Sees("The screen")
	x.Resize(80, 24)
	x.Types("G")
	x.Sees("Issues", "FieldConflict")
	x.Types("\x1b")
	x.Sees("Destinations [2 of 8] /reviews")
	x.Types("\x1b")
	x.Sees("Destinations [8]")
	x.Types("[")
	x.Sees("── Destination gloo-mesh/reviews-", "FieldConflict")
	x.Types(":prob\t\r")
	x.Sees("[7 Prob]", "reviews-shift")
	x.Types("\x1a")
	x.Sees("problems only")
	x.Types("?")
	x.Sees("── Help", "ctrl-z")
	x.Types("q")
	ended(t, x, 0)
}

func TestScreenCtrlC(t *testing.T) {
	t.Parallel()
	x := terminaltest.Start(t, program(t, bookinfo), 100, 30)
	x.Sees("[1 Fleet]", "Fleet [2]")
	x.Types("\x03")
	ended(t, x, cmdutil.ExitInterrupted)
}

func TestScreenTerminated(t *testing.T) {
	t.Parallel()
	x := terminaltest.Start(t, program(t, bookinfo), 100, 30)
	x.Sees("[1 Fleet]", "Fleet [2]")
	x.Signal(syscall.SIGTERM)
	ended(t, x, cmdutil.ExitInterrupted)
}

func TestScreenPanic(t *testing.T) {
	t.Parallel()
	self, err := os.Executable()
	require.NoError(t, err)
	cmd := exec.CommandContext(t.Context(), self, bookinfo)
	pipe := filepath.Join(t.TempDir(), "panic")
	require.NoError(t, syscall.Mkfifo(pipe, 0o600))
	cmd.Env = []string{panicsWith + "=" + pipe}
	x := terminaltest.Start(t, cmd, 100, 30)
	x.Sees("[1 Fleet]")
	require.NoError(t, os.WriteFile(pipe, []byte("now"), 0o600))
	ended(t, x, cmdutil.ExitFailure)
	x.Wrote("planted", "please report")
}

// TestScreenWithoutColour: what the environment says about colours is obeyed.
func TestScreenWithoutColour(t *testing.T) {
	t.Parallel()
	cmd := program(t, bookinfo)
	cmd.Env = []string{"NO_COLOR=1"}
	x := terminaltest.Start(t, cmd, 100, 30)
	x.Sees("[1 Fleet]", "Fleet [2]")
	x.Types("7")
	x.Sees("[7 Prob]", "reviews-shift")
	x.Types("q")
	ended(t, x, 0)
	assert.NotRegexp(t, `\x1b\[[0-9;]*(3[0-7]|4[0-7]|9[0-7]|10[0-7])m`, x.Raw(), "no colours")
	assert.NotContains(t, x.Raw(), "\x1b[38;")
}

// TestNoScreen: where there is none, it says what to use instead.
func TestNoScreen(t *testing.T) {
	t.Parallel()
	cmd := program(t, bookinfo)
	cmd.Env = []string{"TERM=dumb"}
	x := terminaltest.Start(t, cmd, 100, 30)
	x.Ends(cmdutil.ExitUsage)
	// The error wraps between words.
	x.Wrote("TERM=dumb", "meshctl describe destinations --dir", bookinfo)
	assert.NotContains(t, x.Raw(), "\x1b[?1049h", "the screen is not taken")

	out, err := program(t, bookinfo).CombinedOutput()
	require.Error(t, err)
	assert.Contains(t, string(out), "needs a terminal")
	assert.Contains(t, string(out), "meshctl describe destinations --dir "+bookinfo)
	assert.NotContains(t, string(out), "\x1b")
}

// TestFolderFollows saves a file while the dashboard looks at its folder.
func TestFolderFollows(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	require.NoError(t, os.CopyFS(dir, os.DirFS(bookinfo)))
	x := terminaltest.Start(t, program(t, dir), 100, 30)
	x.Sees("[1 Fleet]", "Fleet [2]")
	x.Types("5")
	x.Sees("Policies [4]")
	policy := "apiVersion: networking.mesh.gloo.solo.io/v1\nkind: TrafficPolicy\nmetadata: {name: just-now, namespace: gloo-mesh}\nspec: {policy: {requestTimeout: 1s}}\n"
	file := filepath.Join(dir, "management", "new.yaml")
	require.NoError(t, os.WriteFile(file, []byte(policy), 0o644))
	x.Sees("Policies [5]", "just-now")
	require.NoError(t, os.WriteFile(file, []byte("kind: [\n"), 0o644))
	x.Sees("not up to date", "just-now")
	require.NoError(t, os.Remove(file))
	x.Sees("Policies [4]")
	x.Types("6")
	x.Sees("No changes are recorded here.")
	x.Types("q")
	ended(t, x, 0)
}
