package tui

import (
	"charm.land/lipgloss/v2"

	"github.com/meshctl/meshctl/engine/explain"
)

// Theme is how things are painted. Colours repeat what words and signs say;
// they are the sixteen of the terminal's own palette.
type Theme struct {
	plain, title, faint, selected, bar, tab, accent, marked lipgloss.Style
	levels                                                  [explain.Error + 1]lipgloss.Style
	news, differs, added, removed, found                    lipgloss.Style
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
	if background == NoColour {
		return &Theme{}
	}
	// Bright colours are read on dark, the others on light.
	shade := lipgloss.LightDark(background == Dark)
	colour := func(light, dark string) lipgloss.Style {
		return lipgloss.NewStyle().Foreground(shade(lipgloss.Color(light), lipgloss.Color(dark)))
	}
	bold, reverse := lipgloss.NewStyle().Bold(true), lipgloss.NewStyle().Reverse(true)
	return &Theme{
		title: bold, bar: bold, selected: reverse, tab: reverse.Bold(true),
		faint: colour("8", "7"), accent: colour("4", "14"), marked: colour("4", "14").Bold(true), news: colour("5", "13"), differs: colour("5", "13").Bold(true),
		added: colour("2", "10"), removed: colour("1", "9"), found: reverse.Bold(true),
		levels: [...]lipgloss.Style{
			explain.OK: {}, explain.Info: colour("4", "12"), explain.Warning: colour("5", "11"), explain.Error: colour("1", "9").Bold(true),
		},
	}
}

// sign stands before a row for its level, so that no colour is needed.
func sign(l explain.Level) string {
	return [...]string{explain.OK: " ", explain.Info: "i", explain.Warning: "!", explain.Error: "✗"}[l]
}
