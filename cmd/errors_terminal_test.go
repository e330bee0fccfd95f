//go:build unix

package cmd_test

import (
	"strings"
	"testing"

	"github.com/charmbracelet/x/ansi"
	"github.com/stretchr/testify/assert"

	"github.com/meshctl/meshctl/cmd"
	"github.com/meshctl/meshctl/cmd/cmdutil"
)

// TestErrorsFitTheTerminal: an error is wrapped between words on a terminal, and only there. It begins in colour where colours are wanted.
func TestErrorsFitTheTerminal(t *testing.T) {
	t.Parallel()
	failed := func(terminal, colour bool) string {
		streams, _, _, errs := cmdutil.TestStreams()
		streams.ErrTTY, streams.ErrWidth, streams.ErrColour = terminal, 40, colour
		assert.Equal(t, cmdutil.ExitNotFound, cmd.Run(t.Context(), streams, []string{"describe", "destination", "nothing", "--dir", cases + "/bookinfo/in"}))
		return errs.String()
	}
	plain, forced, wrapped, coloured := failed(false, false), failed(false, true), failed(true, false), failed(true, true)
	assert.Equal(t, "Error: destination \"nothing\" not found; list all with: meshctl describe destination\n", plain)
	assert.Equal(t, "Error: destination \"nothing\" not found;\nlist all with: meshctl describe\ndestination\n", wrapped)
	assert.Equal(t, wrapped, ansi.Strip(coloured))
	assert.Equal(t, plain, ansi.Strip(forced))
	assert.NotEqual(t, plain, forced)
	assert.True(t, strings.HasPrefix(coloured, "\x1b[31mError:\x1b[m "), "%q", coloured)
}
