package main

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// graph prints packages as `go list -json` does: "importer imported...", each the root of a module of
// its name. Modules in deprecated say so.
func graph(t *testing.T, lines []string, deprecated ...string) map[string]*module {
	t.Helper()
	dir := t.TempDir()
	var out strings.Builder
	encoder := json.NewEncoder(&out)
	for _, line := range lines {
		words := strings.Fields(line)
		goMod := filepath.Join(dir, strings.ReplaceAll(words[0], "/", "_"))
		text := "module " + words[0] + "\n"
		for _, d := range deprecated {
			if d == words[0] {
				text = "// Deprecated: use another\n// module.\n" + text
			}
		}
		require.NoError(t, os.WriteFile(goMod, []byte(text), 0o600))
		require.NoError(t, encoder.Encode(map[string]any{
			"ImportPath": words[0], "Imports": append([]string{"fmt"}, words[1:]...),
			"Module": map[string]string{"Path": words[0], "Version": "v1.0.0", "GoMod": goMod},
		}))
	}
	require.NoError(t, encoder.Encode(map[string]string{"ImportPath": "fmt"}))
	modules := map[string]*module{}
	require.NoError(t, addPackages(strings.NewReader(out.String()), modules))
	return modules
}

func TestJudge(t *testing.T) {
	t.Parallel()
	lines := []string{"example.com/old", "example.com/lib example.com/old", "example.com/main example.com/lib"}
	for name, c := range map[string]struct {
		archived   string
		deprecated []string
		platform   bool // only one, so that what is not there may be on others
		want       []string
	}{
		"nothing archived":    {archived: "example.com/elsewhere"},
		"must not be there":   {archived: "example.com/old", want: []string{"module example.com/old v1.0.0: its owners gave it up, and example.com/lib imports it; replace it"}},
		"permitted":           {archived: "# why\nexample.com/old example.com/lib"},
		"another importer":    {archived: "example.com/lib example.com/main\nexample.com/old example.com/main", want: []string{"example.com/lib imports it", "module example.com/old: example.com/main no longer imports it"}},
		"deprecated":          {deprecated: []string{"example.com/old"}, want: []string{"example.com/old v1.0.0: it is deprecated: use another module, and example.com/lib imports it"}},
		"deprecated, allowed": {archived: "example.com/old example.com/lib", deprecated: []string{"example.com/old"}},
		"permitted, gone":     {archived: "example.com/gone example.com/lib", want: []string{"module example.com/gone: example.com/lib no longer imports it; remove this"}},
		"on other platforms":  {archived: "example.com/gone example.com/lib", platform: true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			permitted, err := readArchived(c.archived)
			require.NoError(t, err)
			err = judge(graph(t, lines, c.deprecated...), permitted, !c.platform)
			if len(c.want) == 0 {
				require.NoError(t, err)
				return
			}
			for _, want := range c.want {
				require.ErrorContains(t, err, want)
			}
			assert.Len(t, strings.Split(err.Error(), "\n"), len(c.want))
		})
	}
}

func TestReadArchivedTwice(t *testing.T) {
	t.Parallel()
	_, err := readArchived("a\nb\na c")
	require.ErrorContains(t, err, "module a: it is listed twice")
}

func TestFits(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "meshctl")
	require.NoError(t, os.WriteFile(path, make([]byte, 2_000_000), 0o600))
	require.NoError(t, fits(path, 2_000_000))
	require.ErrorContains(t, fits(path, 1_900_000), "meshctl: it has 2.0 MB for linux/amd64, and may have 1.9 MB")
}
