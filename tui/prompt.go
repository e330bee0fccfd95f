package tui

import (
	"slices"
	"strings"
	"unicode"

	tea "charm.land/bubbletea/v2"

	"github.com/meshctl/meshctl/engine/snapshot"
)

// prompt is the line in which a command or a filter is typed.
type prompt struct {
	text string
	// kind is ':' or '/', or 0 while nothing is typed.
	kind byte
}

// promptLimit is how many characters can be typed.
const promptLimit = 200

func (p *prompt) start(kind byte, text string) { p.kind, p.text = kind, text }

func (p *prompt) stop() { p.kind = 0 }

// typed is what a key made of it.
type typed uint8

const (
	typedMore typed = iota
	typedDone
	typedCancelled
)

// press handles a key. Words are what tab completes to.
func (p *prompt) press(msg tea.KeyPressMsg, words []string) typed {
	if msg.Text != "" {
		p.insert(msg.Text)
		return typedMore
	}
	switch msg.String() {
	case "enter":
		return typedDone
	case "esc", "ctrl+c":
		return typedCancelled
	case "backspace", "ctrl+h":
		if p.text == "" {
			return typedCancelled
		}
		typed := []rune(p.text)
		p.text = string(typed[:len(typed)-1])
	case "ctrl+w":
		p.text = strings.TrimRight(p.text, " ")
		p.text = p.head()
	case "ctrl+u":
		p.text = ""
	case "tab":
		if fits := p.completions(words); len(fits) > 0 {
			p.text = p.head() + fits[0]
		}
	}
	return typedMore
}

// insert adds text, without characters that a line cannot show.
func (p *prompt) insert(text string) {
	typed := []rune(p.text)
	for _, r := range text {
		if unicode.IsPrint(r) && len(typed) < promptLimit {
			typed = append(typed, r)
		}
	}
	p.text = string(typed)
}

// head is what was typed before the last word.
func (p *prompt) head() string { return p.text[:strings.LastIndexByte(p.text, ' ')+1] }

// completions lists the words that the last word begins.
func (p *prompt) completions(words []string) []string {
	if p.kind != ':' {
		return nil
	}
	last := strings.TrimPrefix(p.text, p.head())
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
	value := snapshot.Clean(p.text)
	text := string(p.kind) + value + "_"
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
	// cluster is the scope to take; hasCluster tells it from none.
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
