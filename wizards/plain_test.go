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
	assert.Contains(t, out.String(), `"4" is not a number from 1 to 3; type one, ? for the list, or quit.`)
}

// TestPlainWords: where numbers are asked for, words do what keys do elsewhere.
func TestPlainWords(t *testing.T) {
	t.Parallel()
	options := []wizards.Option{{Value: "a"}, {Value: "b"}}
	q := wizards.Question{Text: "Which?", Back: true}
	for answers, want := range map[string]error{"?\n2\n": nil, "Back\n": wizards.ErrBack, " quit\n": wizards.ErrInterrupted} {
		var out bytes.Buffer
		got, err := wizards.NewPlain(t.Context(), strings.NewReader(answers), &out).Select(q, options, "")
		require.ErrorIs(t, err, want)
		several, err := wizards.NewPlain(t.Context(), strings.NewReader(answers), &out).MultiSelect(q, options, nil)
		require.ErrorIs(t, err, want)
		if want == nil {
			assert.Equal(t, "b", got)
			assert.Equal(t, []string{"b"}, several)
			assert.Equal(t, 4, strings.Count(out.String(), "  2. b\n"), "each list is shown again")
		}
	}
	var out bytes.Buffer
	q.Back = false
	got, err := wizards.NewPlain(t.Context(), strings.NewReader("back\n1\n"), &out).Select(q, options, "")
	require.NoError(t, err)
	assert.Equal(t, "a", got)
	assert.Contains(t, out.String(), `"back" is not a number from 1 to 2; type one, ? for the list, or quit.`)
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
