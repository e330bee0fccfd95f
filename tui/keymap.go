package tui

import (
	"github.com/charmbracelet/bubbles/key"
	tea "github.com/charmbracelet/bubbletea"
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
	verbOpen
	verbBack
	verbYAML
	verbEdit
	verbDelete
	verbFilter
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

// chapter is a column of the help.
type chapter string

const (
	chapterRows  chapter = "ROWS"
	chapterLook  chapter = "LOOK"
	chapterMove  chapter = "MOVE"
	chapterAbout chapter = "ABOUT"
)

// binding is one line of the key map.
type binding struct {
	key.Binding
	verb    verb
	chapter chapter
	// hint puts it into the bottom line.
	hint bool
}

// keymap is all keys. It is read-only; the help, the bottom line and the
// routing of keys are made from it.
var keymap = []binding{
	bind(verbUp, chapterMove, "up", "↑/k", "up", "k"),
	bind(verbDown, chapterMove, "down", "↓/j", "down", "j"),
	bind(verbPageUp, chapterMove, "page up", "pgup", "pgup", "ctrl+b"),
	bind(verbPageDown, chapterMove, "page down", "pgdn", "pgdown", "ctrl+f", " "),
	bind(verbTop, chapterMove, "first", "g", "g", "home"),
	bind(verbBottom, chapterMove, "last", "G", "G", "end"),
	bind(verbLeft, chapterMove, "left", "←", "left"),
	bind(verbRight, chapterMove, "right", "→", "right"),
	bind(verbNextPage, chapterMove, "next page", "tab", "tab"),
	bind(verbPreviousPage, chapterMove, "page before", "shift-tab", "shift+tab"),
	bind(verbOlder, chapterMove, "back in history", "[", "["),
	bind(verbNewer, chapterMove, "forward again", "]", "]"),

	hint(bind(verbOpen, chapterRows, "open", "enter", "enter")),
	hint(bind(verbYAML, chapterRows, "YAML", "y", "y")),
	bind(verbEdit, chapterRows, "edit", "e", "e"),
	bind(verbDelete, chapterRows, "delete", "ctrl-d", "ctrl+d"),
	bind(verbEquivalent, chapterRows, "command for this", "c", "c"),

	hint(bind(verbFilter, chapterLook, "filter", "/", "/")),
	hint(bind(verbProblems, chapterLook, "problems", "ctrl-z", "ctrl+z")),
	bind(verbSort, chapterLook, "sort by next", "s", "s"),
	bind(verbReverse, chapterLook, "reverse", "S", "S"),
	bind(verbWide, chapterLook, "all columns", "w", "w"),
	bind(verbBack, chapterLook, "back", "esc", "esc"),

	hint(bind(verbCommand, chapterAbout, "command", ":", ":")),
	bind(verbLog, chapterAbout, "commands so far", "@", "@"),
	hint(bind(verbHelp, chapterAbout, "help", "?", "?")),
	hint(bind(verbQuit, chapterAbout, "quit", "q", "q")),
	bind(verbInterrupt, chapterAbout, "quit at once", "ctrl-c", "ctrl+c"),
	bind(verbPage1, chapterAbout, "fleet", "1", "1"),
	bind(verbPage1+1, chapterAbout, "destinations", "2", "2"),
	bind(verbPage1+2, chapterAbout, "workloads", "3", "3"),
	bind(verbPage1+3, chapterAbout, "virtual meshes", "4", "4"),
	bind(verbPage1+4, chapterAbout, "policies", "5", "5"),
	bind(verbPage1+5, chapterAbout, "changes", "6", "6"),
	bind(verbPage1+6, chapterAbout, "problems", "7", "7"),
}

func bind(v verb, c chapter, does, shown string, keys ...string) binding {
	return binding{Binding: key.NewBinding(key.WithKeys(keys...), key.WithHelp(shown, does)), verb: v, chapter: c}
}

func hint(b binding) binding {
	b.hint = true
	return b
}

// verbOf says what a key does; verbNone if nothing.
func verbOf(msg tea.KeyMsg) verb {
	for i := range keymap {
		if key.Matches(msg, keymap[i].Binding) {
			return keymap[i].verb
		}
	}
	return verbNone
}
