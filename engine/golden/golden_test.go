package golden

import (
	"fmt"
	"maps"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// recorder is a test that keeps its errors.
type recorder struct {
	testing.TB
	errors []string
}

func (r *recorder) Helper() {}

func (r *recorder) Errorf(format string, args ...any) {
	r.errors = append(r.errors, fmt.Sprintf(format, args...))
}

// TestFiles: a file too many, one that is missing and one that is different
// fail; rewriting corrects all three, and leaves alone what does not belong.
func TestFiles(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	mine := func(name string) bool { return !strings.HasPrefix(name, "in/") }
	rewrite(t, dir, map[string]string{"same": "1", "other": "a\nb\n", "deep/er/old": "3", "in/put": "4"}, func(string) bool { return true })
	files := map[string]string{"same": "1", "other": "a\nc\n", "deep/new": "5"}

	r := &recorder{TB: t}
	check(r, dir, files, mine)
	require.Len(t, r.errors, 3)
	all := strings.Join(r.errors, "\n")
	assert.Contains(t, all, "deep/er/old: nothing produces this file any more")
	assert.Contains(t, all, "deep/new does not exist")
	assert.Contains(t, all, "other (-want +got)")

	rewrite(t, dir, files, mine)
	check(t, dir, files, mine)
	assert.NoDirExists(t, filepath.Join(dir, "deep/er"))
	assert.Equal(t, map[string]string{"in/put": "4"}, func() map[string]string {
		rest := read(t, dir, func(string) bool { return true })
		maps.DeleteFunc(rest, func(name, _ string) bool { return mine(name) })
		return rest
	}())
}
