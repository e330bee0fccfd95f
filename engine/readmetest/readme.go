// Package readmetest keeps what README.md shows at what the code does.
package readmetest

import (
	"os"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// Section checks that what stands in a file between two marks is what it shall
// be; with update it is written there instead.
func Section(t testing.TB, file, begin, end, want string, update bool) {
	t.Helper()
	text, err := os.ReadFile(file)
	require.NoError(t, err)
	before, rest, ok := strings.Cut(string(text), begin)
	require.True(t, ok, "%s has lost the line %q", file, begin)
	is, after, ok := strings.Cut(rest, end)
	require.True(t, ok, "%s has lost the line %q", file, end)
	if update {
		require.NoError(t, os.WriteFile(file, []byte(before+begin+want+end+after), 0o600)) //nolint:gosec // tests name the file
		return
	}
	assert.Equal(t, want, is, "%s is not up to date; run make golden", file)
}
