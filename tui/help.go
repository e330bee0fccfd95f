package tui

import (
	"slices"
	"strings"

	"github.com/meshctl/meshctl/engine/snapshot"
)

// helpWords are what the list of keys does not say.
var helpWords = []string{
	"/text keeps rows with the text (a regular expression), /!text those without it,",
	"/-l app=reviews those with the label, /-f rvw those with the letters in this order.",
	":name goes to a page, :name /text filters it, :name @cluster-1 shows one cluster,",
	":@cluster-1 keeps that on all pages, :@ shows all clusters, :reviews opens that object;",
	"tab completes, and tab again goes on; ↑ and ↓ are the commands before.",
	"On other pages /text searches, n and N go to the next match and the one before, tab to the next link.",
	"On screens of 160 columns or more, details of the row stand beside the list: d goes there and back, w hides them.",
	"Before a row: * marked  ✗ error  ! warning  i information  + new  Δ changed in the last 20 s.",
	"The dashboard changes nothing unless started with --write. c copies the command for what is on the screen.",
	"With --write, space marks the object of a row, and again unmarks it; m marks from the nearest mark to the cursor, or all.",
	"ctrl-space is m, where no tmux or input method takes it. ctrl-d, y and c are for all that is marked.",
	"Marks stay with their objects; esc clears them, after the filter. Where nothing can be changed, space is a page down.",
}

// newHelp is the help, made from the key map.
func newHelp() *readerPage {
	return &readerPage{name: "help", heading: "Help", content: helpLines}
}

func helpLines(width int) []line {
	groups := []helpGroup{groupRows, groupLook, groupMove, groupAbout}
	columns := make([][]string, len(groups))
	height := 0
	for i, c := range groups {
		columns[i] = []string{string(c)}
		for _, b := range keymap {
			if b.helpGroup == c {
				columns[i] = append(columns[i], fit(b.Help().Key, 10)+b.Help().Desc)
			}
		}
		height = max(height, len(columns[i]))
	}
	// As many columns side by side as there is room for.
	const wide = 27
	side := max(1, min(len(columns), width/wide))
	out := []line{}
	for len(columns) > 0 {
		n := min(side, len(columns))
		out = append(out, helpRows(columns[:n], wide)...)
		out = append(out, line{})
		columns = columns[n:]
	}
	for _, words := range helpWords {
		for _, part := range wrap(words, width-2) {
			out = append(out, line{text: part})
		}
	}
	return out
}

func helpRows(columns [][]string, wide int) []line {
	var out []line
	for i := 0; ; i++ {
		text, more := "", false
		for _, c := range columns {
			cell := ""
			if i < len(c) {
				cell, more = c[i], true
			}
			text += fit(cell, wide)
		}
		if !more {
			return out
		}
		l := line{text: strings.TrimRight(text, " ")}
		if i == 0 {
			l.style = styleTitle
		}
		out = append(out, l)
	}
}

// mostDeleted bounds the deleted objects that are kept.
const mostDeleted = 20

// keepDeleted adds deleted objects to those that are kept: all that were deleted at once, however many.
func keepDeleted(kept, deleted []Draft) []Draft {
	kept = append(kept, deleted...)
	return kept[max(0, len(kept)-max(mostDeleted, len(deleted))):]
}

// newLog lists the commands that show what was opened so far, the last one first, and what was deleted, as it was.
func newLog(commands []string, deleted []Draft) *readerPage {
	return &readerPage{name: "commands", heading: "Commands", content: func(width int) []line {
		lines := []line{{text: "Commands that show what was opened; c copies the one under the cursor:"}, {}}
		for _, command := range slices.Backward(commands) {
			for _, part := range commandLines(command, width-2) {
				lines = append(lines, line{text: "  " + part, command: command})
			}
		}
		if len(commands) == 0 {
			lines = append(lines, line{text: "  None yet."})
		}
		return append(lines, deletedLines(deleted, width)...)
	}}
}

// deletedLines are the manifests of what was deleted, the last one first.
func deletedLines(deleted []Draft, width int) (lines []line) {
	if len(deleted) == 0 {
		return nil
	}
	lines = append(lines, line{})
	for _, part := range wrap("What was deleted here, as it was: in a file, kubectl apply -f FILE makes it again.", width) {
		lines = append(lines, line{text: part})
	}
	for _, draft := range slices.Backward(deleted) {
		lines = append(lines, line{}, line{text: draft.Ref.String(), style: styleTitle})
		for part := range strings.Lines(draft.Before) {
			lines = append(lines, line{text: "  " + snapshot.Clean(strings.TrimSuffix(part, "\n"))})
		}
	}
	return lines
}

// commandLines breaks a command between words so that a shell reads it as one: each line but the
// last one ends in a backslash.
func commandLines(command string, width int) []string {
	var out []string
	rest, quoted := "", false
	for i, word := range strings.Split(command, " ") {
		between := " "
		if i == 0 {
			between = ""
		}
		if !quoted && rest != "" && textWidth(rest)+textWidth(word)+len(" ")+len(` \`) > width {
			out = append(out, rest+` \`)
			rest, between = "", "  "
		}
		rest += between + word
		quoted = quoted != (strings.Count(word, "'")%2 == 1)
	}
	return append(out, rest)
}
