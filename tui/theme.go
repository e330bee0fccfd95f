package tui

import "github.com/meshctl/meshctl/engine/explain"

// Theme is how things are painted. Colours repeat what words and signs say;
// they are the sixteen of the terminal's own palette.
type Theme struct {
	plain, title, faint, selected, bar, tab, accent style
	levels                                          [explain.Error + 1]style
	mark, differs                                   style
}

// style is how a text is painted: the parameters of the escape sequence
// "select graphic rendition", as 1;91 for bold and bright red.
type style string

// Render returns the text with the escape sequences of the style.
func (s style) Render(text string) string {
	if s == "" || text == "" {
		return text
	}
	return "\x1b[" + string(s) + "m" + text + "\x1b[0m"
}

// Background is the background that colours are to be read on.
type Background string

// The shades.
const (
	Dark  Background = "dark"
	Light Background = "light"
	// NoColour paints nothing in colour, and nothing bold or inverse either.
	NoColour Background = "none"
)

// NewTheme makes the theme for a background.
func NewTheme(background Background) *Theme {
	const bold, reverse = "1", "7"
	if background == NoColour {
		return &Theme{}
	}
	// Bright colours (90 to 97) are read on dark, the others on light.
	colour := func(light, dark style) style {
		if background == Light {
			return light
		}
		return dark
	}
	return &Theme{
		title: bold, bar: bold, selected: reverse, tab: bold + ";" + reverse,
		faint: colour("90", "37"), accent: colour("34", "96"), mark: colour("35", "95"),
		differs: bold + ";" + colour("35", "95"),
		levels: [...]style{
			explain.OK: "", explain.Info: colour("34", "94"), explain.Warning: colour("35", "93"), explain.Error: bold + ";" + colour("31", "91"),
		},
	}
}

// sign stands before a row for its level, so that no colour is needed.
func sign(l explain.Level) string {
	return [...]string{explain.OK: " ", explain.Info: "i", explain.Warning: "!", explain.Error: "✗"}[l]
}
