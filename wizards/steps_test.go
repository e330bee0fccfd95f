package wizards

import (
	"bytes"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// TestALineForAStep: in any width it is one line, and what it is a part of goes before its name does.
func TestALineForAStep(t *testing.T) {
	t.Parallel()
	outer := Step{3, 4, "VirtualMesh", nil}
	inner := Step{1, 6, "Meshes", &outer}
	assert.Equal(t, "3 of 4 · VirtualMesh › 1 of 6 · Meshes", inner.Line(38))
	assert.Equal(t, "1 of 6 · Meshes", inner.Line(37))
	assert.Equal(t, "1 of 6 · Mesh…", inner.Line(14))
	assert.Equal(t, "Step 3 of 4: VirtualMesh.", outer.Sentence())
	assert.Equal(t, "Step 3 of 4, VirtualMesh; part 1 of 6: Meshes.", inner.Sentence())
	assert.Empty(t, Step{}.Line(80))
	assert.Empty(t, Step{}.Sentence())
	for columns := range 60 {
		assert.LessOrEqual(t, utf8.RuneCountInString(inner.Line(columns)), max(columns, 1))
	}
	assert.Equal(t, Step{2, 2, "b", nil}, stepOf([]string{"a", "b"}, "b", nil))
	assert.Equal(t, Step{}, stepOf([]string{"a", "b"}, "c", nil))
}

// TestPlainSaysEachSectionOnce and again where one goes back to it, or where another wizard begins.
func TestPlainSaysEachSectionOnce(t *testing.T) {
	t.Parallel()
	var out bytes.Buffer
	p := NewPlain(t.Context(), strings.NewReader(strings.Repeat("\n", 9)), &out)
	ask := func(step Step) {
		t.Helper()
		_, err := p.Input(Question{Text: "What?", Step: step}, "x", func(string) error { return nil })
		require.NoError(t, err)
		_, err = p.Select(Question{Text: "Which?", Step: step}, []Option{{Value: "a"}}, "")
		require.NoError(t, err)
	}
	p.Title("New thing")
	first, second := Step{1, 2, "One", nil}, Step{2, 2, "Two", nil}
	ask(first)
	ask(second)
	ask(first)
	p.Title("New thing")
	ask(first)
	var said []string
	for line := range strings.Lines(out.String()) {
		if strings.HasPrefix(line, "Step") || strings.HasPrefix(line, "New") {
			said = append(said, strings.TrimSpace(line))
		}
	}
	assert.Equal(t, []string{"New thing", "Step 1 of 2: One.", "Step 2 of 2: Two.", "Step 1 of 2: One.", "New thing", "Step 1 of 2: One."}, said)
}
