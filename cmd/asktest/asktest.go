// Package asktest runs the commands that ask questions, for their tests.
package asktest

import (
	"errors"
	"os/exec"
	"strings"
	"testing"
	"time"

	"github.com/spf13/cobra"
	"github.com/stretchr/testify/require"

	"github.com/meshctl/meshctl/cmd/cmdutil"
	"github.com/meshctl/meshctl/engine/admission"
)

// Checker is shared because it takes long to make one.
var Checker = admission.NewChecker()

// Bookinfo is a folder of two clusters, as the tests of a command find it.
const Bookinfo = "../../testdata/translate/bookinfo/in"

// Now is the time of the commands.
func Now() time.Time { return time.Date(2030, 1, 1, 0, 0, 0, 0, time.UTC) }

// Run runs a command with its arguments, and returns what it prints.
func Run(t *testing.T, of func(*cmdutil.Factory) *cobra.Command, args ...string) (stdout, stderr string, err error) {
	t.Helper()
	streams, _, out, errs := cmdutil.TestStreams()
	f := cmdutil.NewFactory(streams)
	f.Now = Now
	cmd := of(f)
	cmd.SetArgs(args)
	cmd.SilenceErrors, cmd.SilenceUsage = true, true
	cmd.SetOut(streams.Out)
	err = cmd.ExecuteContext(t.Context())
	return out.String(), errs.String(), err
}

// Wrote checks that a command wrote its manifest; of an object that another one of the case makes INVALID, too.
func Wrote(t *testing.T, err error, stderr string) {
	t.Helper()
	if !errors.Is(err, cmdutil.ErrFindings) {
		require.NoError(t, err, stderr)
	}
}

// Equivalent are the arguments of the command that a wizard printed at the end, as a real shell splits them. Use is the command that they are of,
// such as create.
func Equivalent(t *testing.T, stderr, use string) []string {
	t.Helper()
	_, command, found := strings.Cut(stderr, "Equivalent command:\n\n  meshctl "+use+" ")
	require.True(t, found, stderr)
	return Split(t, strings.TrimSpace(command))
}

// Split splits a command as a real shell does.
func Split(t *testing.T, command string) []string {
	t.Helper()
	out, err := exec.CommandContext(t.Context(), "sh", "-c", `printf '%s\0' `+command).Output()
	require.NoError(t, err, command)
	return strings.Split(strings.TrimSuffix(string(out), "\x00"), "\x00")
}
