package snapshot_test

import (
	"encoding/json"
	"strings"
	"testing"
	"unicode"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"sigs.k8s.io/yaml"

	"github.com/meshctl/meshctl/engine/snapshot"
)

// acting are characters that act on a terminal, or do not show, one of each kind: bidirectional
// controls, zero-width characters, line and paragraph separators, soft hyphen, byte order mark, tags.
const acting = "\u202e\u2066\u061c\u200b\u200d\u2028\u2029\u00ad\ufeff\U000e0041\x1b\x07\u0085"

// TestNothingActsOnATerminal in any form, and what was written is what is read back.
func TestNothingActsOnATerminal(t *testing.T) {
	t.Parallel()
	for _, r := range acting {
		assert.True(t, snapshot.Unprintable(r), "%U", r)
	}
	assert.NotContains(t, strings.Map(func(r rune) rune {
		if unicode.In(r, unicode.Cf, unicode.Zl, unicode.Zp, unicode.Cc) {
			return '!'
		}
		return r
	}, snapshot.Clean("a"+acting+"é日")), "!")
	type list []any
	value := map[string]any{
		"plain": "a" + acting + "b", acting: list{"x", acting, map[string]any{"deep " + acting: true, "number": 1.5}},
		"lines": "one\ntwo " + acting + "\n", "clean": "one\ntwo\n", "ü": nil,
	}
	text, err := snapshot.YAML(value)
	require.NoError(t, err)
	data, err := json.MarshalIndent(value, "", "  ")
	require.NoError(t, err)
	for name, c := range map[string]struct {
		text []byte
		read func([]byte, any) error
	}{
		"YAML": {text, func(text []byte, to any) error { return yaml.Unmarshal(text, to) }}, "JSON": {snapshot.EscapeJSON(data), json.Unmarshal},
	} {
		text := c.text
		assert.Equal(t, -1, strings.IndexFunc(strings.ReplaceAll(string(text), "\n", ""), snapshot.Unprintable), "%s: %q", name, text)
		var back, want any
		require.NoError(t, c.read(text, &back), "%s", text)
		require.NoError(t, json.Unmarshal(data, &want))
		assert.Equal(t, want, back, name)
	}
	assert.Contains(t, string(text), "clean: |\n", "what needs no escape is as before")
}
