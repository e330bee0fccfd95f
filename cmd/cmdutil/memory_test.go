package cmdutil

import (
	"bytes"
	"errors"
	"log/slog"
	"runtime/debug"
	"testing"

	"github.com/KimMachineGun/automemlimit/memlimit"
	"github.com/stretchr/testify/assert"
)

func TestMemoryIsLimitedByTheContainer(t *testing.T) {
	t.Parallel()
	before := debug.SetMemoryLimit(-1)
	t.Cleanup(func() { debug.SetMemoryLimit(before) })
	said := func(container memlimit.Provider) string {
		var text bytes.Buffer
		limitMemory(slog.New(slog.NewTextHandler(&text, &slog.HandlerOptions{Level: slog.LevelDebug})), container)
		return text.String()
	}
	assert.Contains(t, said(func() (uint64, error) { return 0, memlimit.ErrNoLimit }), "level=DEBUG")
	assert.Contains(t, said(func() (uint64, error) { return 0, errors.New("no cgroup") }), "no cgroup")
	assert.Equal(t, before, debug.SetMemoryLimit(-1))
	const limit = 10 << 40 // more than any test needs
	assert.Contains(t, said(memlimit.Limit(limit)), "memory is limited")
	assert.EqualValues(t, limit/10*9, debug.SetMemoryLimit(-1))
}
