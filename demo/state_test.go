package demo

import (
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/meshctl/meshctl/demo/proc"
)

func options(t *testing.T) Options {
	t.Helper()
	opts, err := Options{Dir: filepath.Join(t.TempDir(), "demo")}.complete()
	require.NoError(t, err)
	return opts
}

func mustNotClear(t *testing.T) func(state) error {
	t.Helper()
	return func(state) error {
		t.Error("expected nothing to clear")
		return nil
	}
}

func TestClaimFreshFolder(t *testing.T) {
	t.Parallel()
	opts := options(t)
	s, fresh, err := claim(opts, mustNotClear(t))
	require.NoError(t, err)
	assert.True(t, fresh)
	assert.Equal(t, Starting, s.Phase)
	assert.True(t, s.busy(), "the owner is alive")

	written, err := readState(opts.Dir)
	require.NoError(t, err)
	assert.Equal(t, s, written)
	info, err := os.Stat(filepath.Join(opts.Dir, stateFile))
	require.NoError(t, err)
	assert.Equal(t, os.FileMode(0o600), info.Mode().Perm())
}

func TestClaimSecondTime(t *testing.T) {
	t.Parallel()
	self, err := proc.Self()
	require.NoError(t, err)
	dead := self
	dead.Started = "1"
	for name, test := range map[string]struct {
		found   state
		cleared bool
		fresh   bool
		err     string
	}{
		"another command runs":       {found: state{Phase: Starting, Owner: self}, err: "wait for it, or set another folder"},
		"another command was killed": {found: state{Phase: Starting, Owner: dead}, cleared: true, fresh: true},
		"an earlier one failed":      {found: state{Phase: Failed, Owner: self}, cleared: true, fresh: true},
		"it is up":                   {found: state{Phase: Running, Owner: dead}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			opts := options(t)
			require.NoError(t, os.MkdirAll(opts.Dir, 0o700))
			test.found.Clusters = []string{"cluster-1"}
			test.found.Created = time.Unix(1, 0).UTC()
			require.NoError(t, test.found.write(opts.Dir))

			cleared := false
			s, fresh, err := claim(opts, func(state) error {
				cleared = true
				return nil
			})
			assert.Equal(t, test.cleared, cleared)
			if test.err != "" {
				require.ErrorContains(t, err, test.err)
				return
			}
			require.NoError(t, err)
			assert.Equal(t, test.fresh, fresh)
			if !fresh {
				assert.Equal(t, test.found, s)
			}
		})
	}
}

func TestForeignFolderIsRefused(t *testing.T) {
	t.Parallel()
	opts := options(t)
	require.NoError(t, os.MkdirAll(opts.Dir, 0o700))
	precious := filepath.Join(opts.Dir, "thesis.txt")
	require.NoError(t, os.WriteFile(precious, []byte("x"), 0o600))

	_, _, err := claim(opts, mustNotClear(t))
	require.ErrorContains(t, err, "it contains thesis.txt")
	require.ErrorIs(t, Down(t.Context(), opts), ErrNotRunning)
	assert.FileExists(t, precious)
}

func TestDamagedState(t *testing.T) {
	t.Parallel()
	opts := options(t)
	require.NoError(t, os.MkdirAll(opts.Dir, 0o700))
	require.NoError(t, os.WriteFile(filepath.Join(opts.Dir, stateFile), []byte(`{"phase":`), 0o600))
	_, _, err := claim(opts, mustNotClear(t))
	require.ErrorContains(t, err, "the file is damaged")
	require.ErrorContains(t, Down(t.Context(), opts), "the file is damaged")
}

func TestWithoutADemo(t *testing.T) {
	t.Parallel()
	opts := options(t)
	_, err := Status(t.Context(), opts)
	require.ErrorIs(t, err, ErrNotRunning)
	_, err = Kubeconfig(t.Context(), opts)
	require.ErrorIs(t, err, ErrNotRunning)
	require.ErrorIs(t, Down(t.Context(), opts), ErrNotRunning)
	assert.NoDirExists(t, opts.Dir, "Status does not create a folder")
}

func TestUnknownRuntimeLeavesNothing(t *testing.T) {
	t.Parallel()
	opts := options(t)
	opts.Runtime = "vagrant"
	require.ErrorContains(t, Up(t.Context(), opts), `unknown runtime "vagrant"`)
	assert.NoDirExists(t, opts.Dir)
}

func TestStatusOfAKilledUp(t *testing.T) {
	t.Parallel()
	opts := options(t)
	require.NoError(t, os.MkdirAll(opts.Dir, 0o700))
	self, err := proc.Self()
	require.NoError(t, err)
	self.Started = "1"
	require.NoError(t, state{Phase: Starting, Runtime: RuntimeLocal, Owner: self}.write(opts.Dir))
	report, err := Status(t.Context(), opts)
	require.NoError(t, err)
	assert.Equal(t, Failed, report.Phase)
	assert.False(t, report.Healthy())
}
