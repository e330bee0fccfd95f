package tui

import (
	"charm.land/bubbles/v2/key"
	tea "charm.land/bubbletea/v2"
)

// verb is what a key does.
type verb uint8

const (
	verbNone verb = iota
	verbUp
	verbDown
	verbPageUp
	verbPageDown
	verbTop
	verbBottom
	verbLeft
	verbRight
	verbMark
	verbMarkTo
	verbOpen
	verbDetails
	verbBack
	verbYAML
	verbWhy
	verbWalk
	verbEdit
	verbDelete
	verbFilter
	verbNextMatch
	verbPreviousMatch
	verbCommand
	verbProblems
	verbSort
	verbReverse
	verbWide
	verbOlder
	verbNewer
	verbNextPage
	verbPreviousPage
	verbEquivalent
	verbLog
	verbHelp
	verbQuit
	verbInterrupt
	verbPage1 // the pages follow, one each
)

// helpGroup is a column of the help.
type helpGroup string

const (
	groupRows  helpGroup = "ROWS"
	groupLook  helpGroup = "LOOK"
	groupMove  helpGroup = "MOVE"
	groupAbout helpGroup = "ABOUT"
)

// binding is one line of the key map.
type binding struct {
	key.Binding
	verb      verb
	helpGroup helpGroup
}

// keymap is all keys. It is read-only; the help and the routing of keys are made from it.
var keymap = []binding{
	bind(verbUp, groupMove, "up", "↑/k", "up", "k"),
	bind(verbDown, groupMove, "down", "↓/j", "down", "j"),
	bind(verbPageUp, groupMove, "page up", "pgup", "pgup", "ctrl+b"),
	bind(verbPageDown, groupMove, "page down", "pgdn", "pgdown", "ctrl+f"),
	bind(verbTop, groupMove, "first", "g", "g", "home"),
	bind(verbBottom, groupMove, "last", "G", "G", "end"),
	bind(verbLeft, groupMove, "left", "←", "left"),
	bind(verbRight, groupMove, "right", "→", "right"),
	bind(verbNextPage, groupMove, "next link, page", "tab", "tab"),
	bind(verbPreviousPage, groupMove, "the one before", "shift-tab", "shift+tab"),
	bind(verbOlder, groupMove, "back in history", "[", "["),
	bind(verbNewer, groupMove, "forward again", "]", "]"),

	bind(verbMark, groupRows, "mark, unmark", "space", "space"),
	// ctrl-space is what k9s has. Input methods and tmux often take it, so it is not the only key.
	bind(verbMarkTo, groupRows, "mark to here", "m", "m", "ctrl+space"),
	bind(verbOpen, groupRows, "open", "enter", "enter"),
	bind(verbDetails, groupRows, "details beside", "d", "d"),
	bind(verbYAML, groupRows, "YAML", "y", "y"),
	bind(verbWhy, groupRows, "ask why", "a", "a"),
	bind(verbWalk, groupRows, "graph around it", "x", "x"),
	bind(verbEdit, groupRows, "edit", "e", "e"),
	bind(verbDelete, groupRows, "delete", "ctrl-d", "ctrl+d"),
	bind(verbEquivalent, groupRows, "command for this", "c", "c"),

	bind(verbFilter, groupLook, "filter, search", "/", "/"),
	bind(verbNextMatch, groupLook, "next match", "n", "n"),
	bind(verbPreviousMatch, groupLook, "match before", "N", "N"),
	bind(verbProblems, groupLook, "problems", "ctrl-z", "ctrl+z"),
	bind(verbSort, groupLook, "sort by next", "s", "s"),
	bind(verbReverse, groupLook, "reverse", "S", "S"),
	bind(verbWide, groupLook, "all columns", "w", "w"),
	bind(verbBack, groupLook, "back", "esc", "esc"),

	bind(verbCommand, groupAbout, "command", ":", ":"),
	bind(verbLog, groupAbout, "commands so far", "@", "@"),
	bind(verbHelp, groupAbout, "help", "?", "?"),
	bind(verbQuit, groupAbout, "quit", "q", "q"),
	bind(verbInterrupt, groupAbout, "quit at once", "ctrl-c", "ctrl+c"),
	bind(verbPage1, groupAbout, "fleet", "1", "1"),
	bind(verbPage1+1, groupAbout, "destinations", "2", "2"),
	bind(verbPage1+2, groupAbout, "workloads", "3", "3"),
	bind(verbPage1+3, groupAbout, "virtual meshes", "4", "4"),
	bind(verbPage1+4, groupAbout, "policies", "5", "5"),
	bind(verbPage1+5, groupAbout, "changes", "6", "6"),
	bind(verbPage1+6, groupAbout, "problems", "7", "7"),
	bind(verbPage1+7, groupAbout, "check", "8", "8"),
	bind(verbPage1+8, groupAbout, "edges: who calls what", "9", "9"),
}

func bind(v verb, c helpGroup, does, shown string, keys ...string) binding {
	return binding{Binding: key.NewBinding(key.WithKeys(keys...), key.WithHelp(shown, does)), verb: v, helpGroup: c}
}

// verbOf says what a key does; verbNone if nothing.
func verbOf(msg tea.KeyPressMsg) verb {
	for i := range keymap {
		if key.Matches(msg, keymap[i].Binding) {
			return keymap[i].verb
		}
	}
	return verbNone
}
