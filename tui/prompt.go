package tui

import (
	"slices"
	"strings"

	"charm.land/bubbles/v2/textinput"
	tea "charm.land/bubbletea/v2"

	"github.com/meshctl/meshctl/engine/snapshot"
)

// prompt is the line in which a command or a filter is typed.
type prompt struct {
	input textinput.Model
	// kind is ':' or '/', or 0 while nothing is typed.
	kind byte
}

func newPrompt() prompt {
	input := textinput.New()
	input.Prompt = ""
	input.CharLimit = 200
	return prompt{input: input}
}

func (p *prompt) start(kind byte, text string) {
	p.kind = kind
	p.input.SetValue(text)
	p.input.CursorEnd()
	p.input.Focus()
}

func (p *prompt) stop() {
	p.kind = 0
	p.input.Blur()
}

// typed is what a key made of it.
type typed uint8

const (
	typedMore typed = iota
	typedDone
	typedCancelled
)

// press handles a key. Words are what tab completes to.
func (p *prompt) press(msg tea.KeyPressMsg, words []string) typed {
	switch msg.String() {
	case "enter":
		return typedDone
	case "esc", "ctrl+c":
		return typedCancelled
	case "backspace", "ctrl+h":
		if p.input.Value() == "" {
			return typedCancelled
		}
	case "tab":
		if fits := p.completions(words); len(fits) > 0 {
			p.input.SetValue(p.head() + fits[0])
			p.input.CursorEnd()
		}
		return typedMore
	}
	p.update(msg)
	return typedMore
}

// paste inserts text at the cursor.
func (p *prompt) paste(text string) { p.update(tea.PasteMsg{Content: text}) }

func (p *prompt) update(msg tea.Msg) {
	p.input, _ = p.input.Update(msg) // its command only makes the cursor blink
}

// head is what was typed before the last word.
func (p *prompt) head() string {
	value := p.input.Value()
	return value[:strings.LastIndexByte(value, ' ')+1]
}

// completions lists the words that the last word begins.
func (p *prompt) completions(words []string) []string {
	if p.kind != ':' {
		return nil
	}
	last := strings.TrimPrefix(p.input.Value(), p.head())
	var out []string
	for _, w := range words {
		if strings.HasPrefix(w, last) && w != last && (last != "" || !strings.HasPrefix(w, "@")) {
			out = append(out, w)
		}
	}
	return out
}

// view is the line; the cursor is an underscore, which shows in any terminal.
func (p *prompt) view(words []string, room int) string {
	value, at := []rune(p.input.Value()), p.input.Position()
	text := string(p.kind) + snapshot.Clean(string(value[:at])) + "_" + snapshot.Clean(string(value[at:]))
	if fits := p.completions(words); len(fits) > 0 {
		text += "   tab: " + strings.Join(fits[:min(len(fits), 6)], " ")
	}
	return fit(text, room)
}

// command is what was typed after ":".
type command struct {
	quit, help bool
	page       pageID
	hasPage    bool
	// cluster is the new scope, empty for all clusters; hasCluster is false for the
	// same scope as before.
	cluster    string
	hasCluster bool
	filter     string
	// name is that of an object to open.
	name string
}

// parseCommand reads a command: a page's name or an object's, and any of
// @cluster, /filter and key=value.
func parseCommand(text string) command {
	var c command
	text, filter, found := strings.Cut(text, "/")
	if found {
		c.filter = strings.TrimSpace(filter)
	}
	for _, word := range strings.Fields(text) {
		switch id, ok := pageNamed(word); {
		case strings.HasPrefix(word, "@"):
			c.cluster, c.hasCluster = word[1:], true
		case strings.Contains(word, "="):
			c.filter = "-l " + word
		case c.hasPage || c.name != "":
			c.name = word
		case slices.Contains([]string{"q", "quit", "exit"}, word):
			c.quit = true
		case slices.Contains([]string{"h", "help"}, word):
			c.help = true
		case ok:
			c.page, c.hasPage = id, true
		default:
			c.name = word
		}
	}
	return c
}
