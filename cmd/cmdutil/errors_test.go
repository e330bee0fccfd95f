package cmdutil_test

import (
	"context"
	"errors"
	"fmt"
	"net"
	"strings"
	"testing"

	"github.com/spf13/cobra"
	"github.com/stretchr/testify/assert"

	"github.com/meshctl/meshctl/cmd/cmdutil"
	"github.com/meshctl/meshctl/engine/reading"
)

func TestExitCode(t *testing.T) {
	t.Parallel()
	cases := map[string]struct {
		err  error
		want int
	}{
		"none":            {nil, 0},
		"any":             {errors.New("a"), 1},
		"silent":          {cmdutil.ErrSilent, 1},
		"flag":            {cmdutil.FlagErrorf("a"), 2},
		"wrapped flag":    {fmt.Errorf("b: %w", cmdutil.FlagErrorf("a")), 2},
		"not found":       {cmdutil.NotFoundErrorf("a"), 3},
		"no folder":       {fmt.Errorf("b: %w", &reading.NotFoundError{Err: errors.New("a")}), 3},
		"no snapshot":     {fmt.Errorf("b: %w", &reading.FormatError{Err: errors.New("a")}), 2},
		"unreachable":     {cmdutil.UnreachableErrorf("a"), 4},
		"nobody listens":  {fmt.Errorf("b: %w", &net.OpError{Op: "dial", Err: errors.New("refused")}), 4},
		"findings":        {cmdutil.ErrFindings, 5},
		"canceled":        {fmt.Errorf("b: %w", context.Canceled), 130},
		"canceled a dial": {fmt.Errorf("b: %w", &net.OpError{Op: "dial", Err: context.Canceled}), 130},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			assert.Equal(t, c.want, cmdutil.ExitCode(c.err))
			if c.err != nil {
				assert.Contains(t, cmdutil.ExitCodesHelp, fmt.Sprintf("\n  %d ", c.want), "documented")
			}
		})
	}
	assert.True(t, cmdutil.IsSilent(fmt.Errorf("a: %w", cmdutil.ErrSilent)))
	assert.True(t, cmdutil.IsSilent(cmdutil.ErrFindings))
	assert.False(t, cmdutil.IsSilent(errors.New("a")))
}

func TestArgs(t *testing.T) {
	t.Parallel()
	cmd := &cobra.Command{Use: "register NAME [CONTEXT]"}
	args := cmdutil.Args("NAME", "[CONTEXT]")
	assert.NoError(t, args(cmd, []string{"a"}))
	assert.NoError(t, args(cmd, []string{"a", "b"}))
	assert.EqualError(t, args(cmd, nil), "register: NAME is required; usage: register NAME [CONTEXT]")
	assert.EqualError(t, cmdutil.Args("FROM", "TO")(cmd, nil), "register: FROM and TO are required; usage: register NAME [CONTEXT]")
	assert.EqualError(t, args(cmd, strings.Fields("a b c")), `register: unexpected argument "c"; usage: register NAME [CONTEXT]`)
	assert.EqualError(t, cmdutil.NoArgs(cmd, []string{"a"}), `register takes no arguments, but got "a"`)
	assert.NoError(t, cmdutil.NoArgs(cmd, nil))
}
