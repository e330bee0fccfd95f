package proc

import (
	"errors"
	"runtime"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestSupported(t *testing.T) {
	t.Parallel()
	for _, goos := range []string{"linux", "darwin"} {
		require.NoError(t, Supported(goos))
	}
	err := Supported("windows")
	require.ErrorIs(t, err, ErrUnsupported)
	assert.EqualError(t, err, "windows: local processes need Linux or macOS; on Windows, run meshctl in WSL")
}

// TestSupportedIsWhatStarts compares the list with the build constraints.
func TestSupportedIsWhatStarts(t *testing.T) {
	t.Parallel()
	_, err := startOf(-1)
	assert.Equal(t, errors.Is(err, ErrUnsupported), Supported(runtime.GOOS) != nil)
}
