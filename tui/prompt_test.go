package tui

import (
	"strings"
	"testing"

	tea "charm.land/bubbletea/v2"
	"github.com/stretchr/testify/assert"
)

func TestPromptEditsTheLine(t *testing.T) {
	t.Parallel()
	p := newPrompt()
	shown := func() string { return strings.TrimSpace(p.view(nil, 40)) }
	p.start(':', "", nil)
	for _, key := range []tea.KeyPressMsg{
		{Code: 'd', Text: "d"}, {Code: 'é', Text: "é"}, {Code: tea.KeySpace, Text: " "}, {Code: 'x', Text: "x"}, {Code: 'y', Text: "y"},
		{Code: tea.KeyBackspace},
	} {
		assert.Equal(t, typedMore, p.press(key, nil))
	}
	assert.Equal(t, ":dé x_", shown())
	p.press(tea.KeyPressMsg{Code: tea.KeyLeft}, nil)
	assert.Equal(t, ":dé _x", shown(), "the cursor shows where text is inserted")
	p.press(tea.KeyPressMsg{Code: 'w', Mod: tea.ModCtrl}, nil)
	assert.Equal(t, ":_x", shown())
	p.press(tea.KeyPressMsg{Code: 'u', Mod: tea.ModCtrl}, nil)
	p.press(tea.KeyPressMsg{Code: tea.KeyDelete}, nil)
	assert.Equal(t, ":_", shown())
	assert.Equal(t, typedCancelled, p.press(tea.KeyPressMsg{Code: tea.KeyBackspace}, nil), "nothing is left to remove")

	p.start(':', "enter", nil)
	assert.Equal(t, typedDone, p.press(tea.KeyPressMsg{Code: tea.KeyEnter}, nil))
}

func TestPastedTextIsNoKeys(t *testing.T) {
	t.Parallel()
	m := start(t, load(t, "../testdata/translate/bookinfo/in"), NewTheme(NoColour), 100, 30)
	m.Update(tea.PasteMsg{Content: "q2"})
	assert.Contains(t, frameOf(m).screen(), "press : or / before you paste")
	press(t, m, "/")
	m.Update(tea.PasteMsg{Content: "rev\n\x1biews"})
	assert.Equal(t, "rev iews", m.prompt.input.Value(), "characters that a line cannot show are left out")
}
