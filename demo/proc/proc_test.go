//go:build unix

package proc

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/meshctl/meshctl/demo/waittest"
)

func sleeper(t *testing.T) Spec {
	t.Helper()
	dir := t.TempDir()
	return Spec{Name: "sleeper", Path: "/bin/sh", Args: []string{"-c", "echo started; sleep 600 & wait"}, Dir: dir, Log: filepath.Join(dir, "logs", "sleeper.log")}
}

func newGuard(t *testing.T) *Guard {
	t.Helper()
	guard, err := NewGuard()
	require.NoError(t, err)
	t.Cleanup(guard.Close)
	return guard
}

func TestStartAndKill(t *testing.T) {
	t.Parallel()
	p, err := Start(newGuard(t), sleeper(t))
	require.NoError(t, err)
	assert.True(t, p.Alive())
	waittest.Until(t, "the log is written", func() bool { return p.Tail(1) == "started" })

	require.NoError(t, p.Kill(t.Context()))
	assert.False(t, p.Alive())
	require.NoError(t, p.Kill(t.Context()), "to kill a process that is gone is not an error")
}

func TestStartSaysWhatIsMissing(t *testing.T) {
	t.Parallel()
	spec := sleeper(t)
	spec.Path = filepath.Join(spec.Dir, "nothing")
	_, err := Start(newGuard(t), spec)
	require.ErrorIs(t, err, os.ErrNotExist)
	assert.ErrorContains(t, err, "sleeper: starting "+spec.Path)
}

// TestNothingRunsUnwatched: if the caller dies before the guard watches a process, the
// program does not run.
func TestNothingRunsUnwatched(t *testing.T) {
	t.Parallel()
	log, err := os.Create(filepath.Join(t.TempDir(), "log"))
	require.NoError(t, err)
	defer func() { _ = log.Close() }()
	command, gate, err := startGated(sleeper(t), log)
	require.NoError(t, err)
	require.NoError(t, gate.Close(), "as when the caller dies")
	require.Error(t, command.Wait())
	written, err := os.ReadFile(log.Name())
	require.NoError(t, err)
	assert.Empty(t, string(written))
}

func TestReusedNumberIsAnotherProcess(t *testing.T) {
	t.Parallel()
	p, err := Start(newGuard(t), sleeper(t))
	require.NoError(t, err)

	earlier := p
	earlier.Started = "1"
	assert.False(t, earlier.Alive())
	require.NoError(t, earlier.Kill(t.Context()))
	assert.True(t, p.Alive(), "a process with the same PID must not be killed")
}

func TestGuardEndsWhatWasNotReleased(t *testing.T) {
	t.Parallel()
	guard := newGuard(t)
	p, err := Start(guard, sleeper(t))
	require.NoError(t, err)

	guard.Close()
	waittest.Until(t, "the process is ended", func() bool { return !p.Alive() })
}

func TestGuardSparesWhatWasReleasedOrForgotten(t *testing.T) {
	t.Parallel()
	guard := newGuard(t)
	forgotten, err := Start(guard, sleeper(t))
	require.NoError(t, err)
	watched, err := Start(guard, sleeper(t))
	require.NoError(t, err)
	require.NoError(t, guard.Forget(forgotten))
	guard.Close()
	waittest.Until(t, "the watched one is ended", func() bool { return !watched.Alive() })
	assert.True(t, forgotten.Alive())

	second := newGuard(t)
	released, err := Start(second, sleeper(t))
	require.NoError(t, err)
	require.NoError(t, second.Release())
	assert.True(t, released.Alive(), "Release returns when the guard is gone")

	for _, p := range []Process{forgotten, released} {
		require.NoError(t, p.Kill(t.Context()))
	}
}

func TestGuardRemovesTheFolder(t *testing.T) {
	t.Parallel()
	dir := filepath.Join(t.TempDir(), "of many words")
	require.NoError(t, os.Mkdir(dir, 0o700))
	guard := newGuard(t)
	// It writes files for as long as it runs.
	_, err := Start(guard, Spec{Name: "writer", Path: "/bin/sh", Args: []string{"-c", "i=0; while i=$((i+1)); do : > $i; done"}, Dir: dir, Log: filepath.Join(dir, "log")})
	require.NoError(t, err)
	require.NoError(t, guard.Remove(dir))
	waittest.Until(t, "it writes", func() bool { _, err := os.Stat(filepath.Join(dir, "100")); return err == nil })
	guard.Close()
	assert.NoDirExists(t, dir)

	spared := t.TempDir()
	guard = newGuard(t)
	require.NoError(t, guard.Remove(spared))
	require.NoError(t, guard.Release())
	assert.DirExists(t, spared)
}

func TestSelf(t *testing.T) {
	t.Parallel()
	self, err := Self()
	require.NoError(t, err)
	assert.Equal(t, os.Getpid(), self.PID)
	assert.True(t, self.Alive())
}

func TestBothWaysToTellTheStart(t *testing.T) {
	t.Parallel()
	p, err := Start(newGuard(t), sleeper(t))
	require.NoError(t, err)
	first, err := startFromPS(p.PID)
	if err != nil {
		t.Skipf("no ps here: %v", err)
	}
	again, err := startFromPS(p.PID)
	require.NoError(t, err)
	assert.Equal(t, first, again)
	require.NoError(t, p.Kill(t.Context()))
	_, err = startFromPS(p.PID)
	assert.ErrorIs(t, err, errGone)
}
