package wizards_test

import (
	"bytes"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/meshctl/meshctl/wizards"
)

// A preset of several options can be taken, changed and given up.
func TestPlainPresetOfSeveral(t *testing.T) {
	t.Parallel()
	var out bytes.Buffer
	p := wizards.NewPlain(t.Context(), strings.NewReader("\n0\n2\n4\n1\n"), &out)
	options := []wizards.Option{{Value: "a"}, {Value: "b"}, {Value: "c"}}
	for _, want := range [][]string{{"a", "c"}, nil, {"b"}, {"a"}} {
		got, err := p.MultiSelect(wizards.Question{Text: "Which?"}, options, []string{"c", "a"})
		require.NoError(t, err)
		assert.Equal(t, want, got)
	}
	assert.Contains(t, out.String(), "(empty for 1,3, 0 for none)")
	assert.Contains(t, out.String(), `"4" is not a number from 1 to 3.`)
}

func TestEditor(t *testing.T) {
	for name, c := range map[string]struct{ visual, editor, want, wantErr string }{
		"EDITOR":             {"", `sh -c 'echo more >> "$0"'`, "text\nmore\n", ""},
		"VISUAL comes first": {`sh -c 'echo first > "$0"'`, "false", "first\n", ""},
		"one that fails":     {"", "false", "", "editor false: exit status 1; set EDITOR to another program"},
		"one that is not":    {"", "/none/at/all", "", "set EDITOR to another program"},
		"no words":           {"", `'`, "", "set EDITOR to the name of a program"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Setenv("VISUAL", c.visual)
			t.Setenv("EDITOR", c.editor)
			p := wizards.NewPlain(t.Context(), strings.NewReader(""), &bytes.Buffer{})
			got, err := p.Edit("text\n")
			if c.wantErr != "" {
				require.ErrorContains(t, err, c.wantErr)
				assert.Equal(t, "text\n", got, "what was there is not lost")
				return
			}
			require.NoError(t, err)
			assert.Equal(t, c.want, got)
		})
	}
}
