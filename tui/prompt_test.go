package tui

import (
	"testing"

	tea "charm.land/bubbletea/v2"
	"github.com/stretchr/testify/assert"
)

func TestPromptEditsTheLine(t *testing.T) {
	t.Parallel()
	var p prompt
	p.start(':', "")
	for _, key := range []tea.KeyPressMsg{
		{Code: 'd', Text: "d"}, {Code: 'é', Text: "é"}, {Code: tea.KeySpace, Text: " "}, {Code: 'x', Text: "x"}, {Code: 'y', Text: "y"},
		{Code: tea.KeyBackspace}, {Code: tea.KeyLeft},
	} {
		assert.Equal(t, typedMore, p.press(key, nil))
	}
	assert.Equal(t, "dé x", p.text)
	p.press(tea.KeyPressMsg{Code: 'w', Mod: tea.ModCtrl}, nil)
	assert.Equal(t, "dé ", p.text)
	p.press(tea.KeyPressMsg{Code: 'w', Mod: tea.ModCtrl}, nil)
	assert.Empty(t, p.text)
	assert.Equal(t, typedCancelled, p.press(tea.KeyPressMsg{Code: tea.KeyBackspace}, nil), "nothing is left to remove")

	p.start(':', "enter")
	assert.Equal(t, typedDone, p.press(tea.KeyPressMsg{Code: tea.KeyEnter}, nil))
	p.press(tea.KeyPressMsg{Code: 'u', Mod: tea.ModCtrl}, nil)
	assert.Empty(t, p.text)
}

func TestPastedTextIsNoKeys(t *testing.T) {
	t.Parallel()
	m := start(t, load(t, "../testdata/translate/bookinfo/in"), NewTheme(NoColour), 100, 30)
	m.Update(tea.PasteMsg{Content: "q2"})
	assert.Contains(t, m.screen(), "press : or / before you paste")
	press(t, m, "/")
	m.Update(tea.PasteMsg{Content: "rev\n\x1biews"})
	assert.Equal(t, "reviews", m.prompt.text)
}
