package dashboard

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/spf13/cobra"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/meshctl/meshctl/cmd/cmdutil"
	"github.com/meshctl/meshctl/tui"
)

// programMode makes the test binary the program itself.
const programMode = "MESHCTL_DASHBOARD_TEST"

func TestMain(m *testing.M) {
	switch mode := os.Getenv(programMode); mode {
	case "":
		os.Exit(sandbox.Main(m))
	default:
		os.Exit(program(mode, os.Args[1:]))
	}
}

// program is meshctl with this command only; in mode panic its source fails
// after the first news.
func program(mode string, args []string) int {
	f := cmdutil.NewFactory(cmdutil.System())
	root := &cobra.Command{Use: "meshctl", SilenceErrors: true, SilenceUsage: true}
	root.AddCommand(NewCmd(f, func(ctx context.Context, o *Options) error {
		if mode == "panic" {
			source, err := newFolder(o.Dir, f.Now)
			if err != nil {
				return err
			}
			o.source = &panicking{Source: source}
		}
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
	told bool
}

func (p *panicking) Next(ctx context.Context) (*tui.News, error) {
	if p.told {
		panic("planted")
	}
	p.told = true
	return p.Source.Next(ctx)
}

const bookinfo = "../../testdata/translate/bookinfo/in"

func TestScreen(t *testing.T) {
	t.Parallel()
	x := startTerminal(t, "plain", bookinfo)
	x.sees("[1 Fleet]", "istiod-istio-system-cluster-1", "2 clusters")
	x.types("2")
	x.sees("[2 Dest]", "productpage", "Destinations [8]")
	x.types("/reviews")
	x.sees("Destinations [2 of 8] /reviews")
	x.misses("productpage")
	x.types("\r")
	x.types("\r")
	x.sees("Destination gloo-mesh/reviews-bookinfo-cluster-1", "reviews-shift", "Federation")
	x.types("y")
	x.sees("YAML of Destination", "kind: Destination")
	x.types("\x1b")
	x.sees("Destination gloo-mesh/reviews-bookinfo-cluster-1", "Federation")
	x.resize(160, 50)
	x.types("G")
	x.sees("Endpoints that are ready", "patient")
	x.resize(60, 20)
	x.sees("the dashboard needs 80x24")
	x.resize(80, 24)
	x.types("G")
	x.sees("Issues", "FieldConflict")
	x.types("\x1b")
	x.sees("Destinations [2 of 8] /reviews")
	x.types("\x1b")
	x.sees("Destinations [8]")
	x.types(":prob\t\r")
	x.sees("[7 Problems]", "reviews-shift")
	x.types("\x1a")
	x.sees("problems only")
	x.types("?")
	x.sees("── Help", "shift-tab")
	x.types("q")
	x.ends(0)
}

func TestScreenCtrlC(t *testing.T) {
	t.Parallel()
	x := startTerminal(t, "plain", bookinfo)
	x.sees("[1 Fleet]")
	x.types("\x03")
	x.ends(cmdutil.ExitInterrupted)
}

func TestScreenPanic(t *testing.T) {
	t.Parallel()
	x := startTerminal(t, "panic", bookinfo)
	x.ends(cmdutil.ExitFailure)
	assert.Eventually(t, func() bool {
		x.mu.Lock()
		defer x.mu.Unlock()
		return strings.Contains(x.raw.String(), "planted") && strings.Contains(x.raw.String(), "please report")
	}, 5*time.Second, 10*time.Millisecond)
}

// TestFolderFollows saves a file while the dashboard looks at its folder.
func TestFolderFollows(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	require.NoError(t, os.CopyFS(dir, os.DirFS(bookinfo)))
	x := startTerminal(t, "plain", dir)
	x.sees("[1 Fleet]", "2 clusters")
	x.types("5")
	x.sees("Policies [4]")
	policy := "apiVersion: networking.mesh.gloo.solo.io/v1\nkind: TrafficPolicy\nmetadata: {name: just-now, namespace: gloo-mesh}\nspec: {policy: {requestTimeout: 1s}}\n"
	file := filepath.Join(dir, "management", "new.yaml")
	require.NoError(t, os.WriteFile(file, []byte(policy), 0o644))
	x.sees("Policies [5]", "just-now")
	require.NoError(t, os.WriteFile(file, []byte("kind: [\n"), 0o644))
	x.sees("this is old", "just-now")
	require.NoError(t, os.Remove(file))
	x.sees("Policies [4]")
	require.NoError(t, x.cmd.Process.Signal(syscall.SIGTERM))
	<-x.ended
}
