package golden

import (
	"os"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// Section fails the test if the text between the lines begin and end of a file
// is not want. With -update it writes want there first.
func Section(t testing.TB, file, begin, end, want string) {
	t.Helper()
	text, err := os.ReadFile(file)
	require.NoError(t, err)
	before, rest, ok := strings.Cut(string(text), begin)
	require.True(t, ok, "%s: the line %q is missing", file, begin)
	got, after, ok := strings.Cut(rest, end)
	require.True(t, ok, "%s: the line %q is missing", file, end)
	if *update {
		require.NoError(t, os.WriteFile(file, []byte(before+begin+want+end+after), 0o600)) //nolint:gosec // tests name the file
		return
	}
	assert.Equal(t, want, got, "%s is not up to date; run make golden", file)
}
