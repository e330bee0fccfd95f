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
	// commands are those that were typed before, and at is the one shown: len(commands) is the new
	// one, of which typed was typed so far.
	commands []string
	at       int
	typed    string
	// offered are the completions that tab goes through, of which next comes next; nil after
	// another key.
	offered []string
	next    int
}

func newPrompt() prompt {
	input := textinput.New()
	input.Prompt = ""
	input.CharLimit = 200
	return prompt{input: input}
}

func (p *prompt) start(kind byte, text string, commands []string) {
	p.kind, p.commands, p.at, p.offered = kind, commands, len(commands), nil
	p.set(text)
	p.input.Focus()
}

func (p *prompt) stop() {
	p.kind = 0
	p.input.Blur()
}

func (p *prompt) set(text string) {
	p.input.SetValue(text)
	p.input.CursorEnd()
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
	case "esc":
		return typedCancelled
	case "backspace", "ctrl+h":
		if p.input.Value() == "" {
			return typedCancelled
		}
	case "tab", "shift+tab":
		p.complete(words, msg.String() == "tab")
		return typedMore
	case "up", "ctrl+p":
		p.recall(-1)
		return typedMore
	case "down", "ctrl+n":
		p.recall(1)
		return typedMore
	}
	p.offered = nil
	p.update(msg)
	return typedMore
}

// complete replaces the last word by the next of its completions, or by the one before.
func (p *prompt) complete(words []string, forward bool) {
	if p.offered == nil {
		p.offered, p.next = p.completions(words), 0
	} else if !forward {
		p.next += len(p.offered) - 2
	}
	if n := len(p.offered); n > 0 {
		p.set(p.head() + p.offered[p.next%n])
		p.next = p.next%n + 1
	}
}

// recall shows a command that was typed before, or again the new one.
func (p *prompt) recall(step int) {
	at := p.at + step
	if at < 0 || at > len(p.commands) {
		return
	}
	if p.at == len(p.commands) {
		p.typed = p.input.Value()
	}
	p.at, p.offered = at, nil
	if at == len(p.commands) {
		p.set(p.typed)
		return
	}
	p.set(p.commands[at])
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

// completions lists the words that the last word begins and, after them, those that it is a
// part of.
func (p *prompt) completions(words []string) []string {
	if p.kind != ':' {
		return nil
	}
	last := strings.ToLower(strings.TrimPrefix(p.input.Value(), p.head()))
	var begin, have []string
	for _, w := range words {
		switch lower := strings.ToLower(w); {
		case lower == last || last == "" && (strings.HasPrefix(w, "@") || len(begin) >= maxOffered):
		case strings.HasPrefix(lower, last):
			begin = append(begin, w)
		case strings.Contains(lower, last):
			have = append(have, w)
		}
	}
	return append(begin, have...)
}

// maxOffered is how many completions are offered before anything is typed.
const maxOffered = 12

// view is the line; the cursor is an underscore, which shows in any terminal.
func (p *prompt) view(words []string, room int) string {
	value, at := []rune(p.input.Value()), p.input.Position()
	text := string(p.kind) + snapshot.Clean(string(value[:at])) + "_" + snapshot.Clean(string(value[at:]))
	fits, next := p.offered, p.next
	if fits == nil {
		fits, next = p.completions(words), 0
	}
	if next < len(fits) {
		text += "   tab: " + snapshot.Clean(strings.Join(fits[next:min(len(fits), next+6)], " "))
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
			if kind := kindNamed(word); kind != snapshot.NoKind && c.filter == "" {
				c.filter = "^" + kind.String() + ".*" // the first column, and what is typed after / goes on
			}
		default:
			c.name = word
		}
	}
	return c
}
