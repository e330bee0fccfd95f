package offline_test

import (
	"regexp"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/stretchr/testify/require"

	"github.com/meshctl/meshctl/engine/offline"
)

// placed begins each line of what Load complains of.
var placed = regexp.MustCompile(`^management/policies\.yaml:\d+: document \d+: `)

// FuzzLoadPolicies: any text in the place of policies is read or refused; what
// is refused is named by file, line and document.
func FuzzLoadPolicies(f *testing.F) {
	f.Fuzz(func(t *testing.T, data string) {
		files := fstest.MapFS{"management/policies.yaml": &fstest.MapFile{Data: []byte(data)}}
		in, _, err := offline.Load(files)
		if err != nil {
			first, _, _ := strings.Cut(err.Error(), "\n")
			require.Regexp(t, placed, first)
			return
		}
		again, _, err := offline.Load(files)
		require.NoError(t, err)
		require.Equal(t, in, again)
	})
}
