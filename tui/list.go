package tui

import (
	"fmt"
	"strings"
	"time"

	"charm.land/lipgloss/v2"

	"github.com/meshctl/meshctl/engine/explain"
	"github.com/meshctl/meshctl/engine/snapshot"
)

// listPage is a page with a table.
type listPage struct {
	id     pageID
	filter filter
	order  order
	window window

	grid   *grid
	picked []int
	// query is the one that picked the rows, and layout is for columnsFor.
	query      query
	layout     layout
	columnsFor [3]int
	// from is how many columns, after the first one, are to the left of the screen.
	from int
	// key is that of the row under the cursor, which it stays on.
	key   string
	marks marks
}

func (p *listPage) crumb() string { return pageInfos[p.id].names[0] }

// refresh picks the rows again if the table or the query has changed.
func (p *listPage) refresh(s *shared, width, height int) {
	g := s.tables[p.id]
	q := query{filter: p.filter, cluster: s.cluster, problems: s.problems, order: p.order}
	if g != nil && (g != p.grid || q != p.query) {
		p.grid, p.query = g, q
		p.picked = g.pick(q)
		for at, i := range p.picked {
			if g.rows[i].Key == p.key {
				p.window.cursor = at
				break
			}
		}
		p.columnsFor = [3]int{}
		p.marks.counted = false
	}
	if g != nil && !p.marks.counted {
		p.marks.see(g, p.picked)
	}
	wide := 0
	if s.wide {
		wide = 1
	}
	if size := [3]int{width, wide + 1, p.from}; g != nil && p.columnsFor != size {
		p.layout = newLayout(g, width-rowPrefix, s.wide, p.from)
		p.columnsFor = size
	}
	p.window.set(len(p.picked), height-noteRoom(height)-1-len(p.lead(s, width, height)))
	p.rememberRow()
}

// rememberRow remembers the row under the cursor.
func (p *listPage) rememberRow() {
	if row := p.row(); row != nil {
		p.key = row.Key
	}
}

func (p *listPage) row() *gridRow {
	if p.grid == nil || p.window.cursor >= len(p.picked) {
		return nil
	}
	return &p.grid.rows[p.picked[p.window.cursor]]
}

func (p *listPage) selected(*shared) snapshot.Ref {
	if row := p.row(); row != nil {
		return row.Ref
	}
	return snapshot.Ref{}
}

func (p *listPage) press(v verb, s *shared) action {
	if p.window.move(v) {
		p.rememberRow()
		return nil
	}
	switch v {
	case verbOpen:
		return open{p.selected(s)}
	case verbYAML:
		if p.marks.count() > 0 {
			return openYAML{p.marks.list()}
		}
		return openYAML{[]snapshot.Ref{p.selected(s)}}
	case verbMark:
		ref := p.selected(s)
		p.marks.set(ref, !p.marks.has(ref))
		p.window.move(verbDown)
		p.rememberRow()
	case verbMarkTo:
		p.marks.to(p.grid, p.picked, p.window.cursor, s.marks)
	case verbSort:
		p.order.column++
		if p.grid != nil && p.order.column > len(p.grid.columns) {
			p.order = order{}
		}
	case verbRight:
		p.from++
	case verbLeft:
		p.from--
	case verbReverse:
		p.order.down = !p.order.down
	}
	return nil
}

func (p *listPage) disabled(v verb, s *shared) string {
	row := p.row()
	if p.marks.count() > 0 && (v == verbYAML || v == verbEdit || v == verbDelete) {
		return p.notWithMarks(v)
	}
	switch v {
	case verbMark, verbMarkTo:
		return p.notMarked(v, s)
	case verbOpen, verbYAML, verbEdit, verbDelete:
		switch {
		case row == nil:
			return "there is no row"
		case row.Ref == (snapshot.Ref{}) || s.latest.Index == nil || !s.latest.Index.Has(row.Ref):
			return "there is nothing more to show for this row"
		}
	case verbReverse:
		if p.order.column == 0 {
			return "the rows are not sorted; s sorts them by a column"
		}
	case verbSort:
		if p.grid == nil {
			return "nothing has been read yet"
		}
	case verbRight:
		if p.grid == nil || !p.layout.hides(p.grid) {
			return "all columns are on the screen; s sorts by the next one"
		}
	case verbLeft:
		if p.from == 0 {
			return "the first columns are on the screen"
		}
	case verbNextMatch, verbPreviousMatch:
		return "a list shows only what the filter (/) matches"
	}
	return ""
}

// narrow implements page.
func (p *listPage) narrow(typed string) error {
	f, err := parseFilter(typed)
	if err == nil {
		p.filter = f
	}
	return err
}

// narrowed implements page.
func (p *listPage) narrowed() string { return p.filter.typed }

// keys implements page.
func (p *listPage) keys(s *shared) []hint {
	problems := "problems"
	if s.problems {
		problems = "all rows"
	}
	out := []hint{{verbOpen, "open"}}
	yaml := "YAML"
	if n := p.marks.count(); n > 0 {
		// The keys that are for all marked objects come first.
		out = []hint{{verbMark, "mark"}, {verbDelete, fmt.Sprintf("delete %d", n)}}
		if p.filter.kind == filterNone && !s.problems && s.cluster == "" {
			out = append(out, hint{verbBack, "unmark"})
		}
		yaml = fmt.Sprintf("YAML of %d", n)
		out = append(out, hint{verbMarkTo, "mark to here"}, hint{verbOpen, "open"})
	} else {
		out = append(out, hint{verbMark, "mark"})
	}
	if s.details {
		out = append(out, hint{verbDetails, "to the details"})
	}
	return append(out, []hint{{verbYAML, yaml}, {verbFilter, "filter"}, {verbProblems, problems}, {verbWhy, "ask why"}, {verbRight, "more columns"}}...)
}

func (p *listPage) commandLine(s *shared) string {
	if p.id == pageEdges && !explain.Counted(s.latest.Index) {
		return "" // a folder counts nothing
	}
	return s.source.Command(pageInfos[p.id].describe)
}

// title names the page, how many rows it shows, and why not all.
func (p *listPage) title(s *shared) string {
	text := pageInfos[p.id].title
	if p.grid != nil {
		if len(p.picked) == len(p.grid.rows) {
			text += fmt.Sprintf(" [%d]", len(p.picked))
		} else {
			text += fmt.Sprintf(" [%d of %d]", len(p.picked), len(p.grid.rows))
		}
	}
	text += p.marks.title()
	if s.cluster != "" {
		text += " @" + s.cluster
	}
	if s.problems {
		text += " problems only"
	}
	if p.filter.kind != filterNone {
		text += " /" + snapshot.Clean(p.filter.typed)
	}
	if p.grid != nil && p.order.column > 0 {
		arrow := "↑"
		if p.order.down {
			arrow = "↓"
		}
		text += " by " + p.grid.columns[p.order.column-1].Title + arrow
	}
	return text
}

// position is empty: the title counts the rows.
func (p *listPage) position() string { return "" }

// emptyText says why there are no rows, and what next.
func (p *listPage) emptyText(s *shared) string {
	switch {
	case p.grid == nil && s.latest.ReadError != "":
		return "Nothing could be read yet: " + s.latest.ReadError
	case p.grid == nil:
		return "Reading " + s.source.Name() + " …"
	case len(p.grid.rows) == 0:
		return p.grid.empty
	}
	var because []string
	if p.filter.kind != filterNone {
		because = append(because, "the filter /"+snapshot.Clean(p.filter.typed)+" (esc clears it)")
	}
	if s.problems {
		because = append(because, "problems only (ctrl-z shows all)")
	}
	if s.cluster != "" {
		because = append(because, "the scope @"+s.cluster+" (:@ shows all clusters)")
	}
	return fmt.Sprintf("None of %s matches %s.", snapshot.Count(len(p.grid.rows), "row"), strings.Join(because, " and "))
}

func (p *listPage) render(s *shared, width, height int) []string {
	if len(p.picked) == 0 {
		lines := []string{""}
		for _, line := range wrap(p.emptyText(s), width-4) {
			lines = append(lines, "  "+line)
		}
		return lines
	}
	lines := append(make([]string, 0, height), p.lead(s, width, height)...)
	lines = append(lines, s.theme.title.Render(p.layout.header(p.grid, p.order)))
	now := time.Unix(s.now, 0)
	end := min(p.window.offset+p.window.height, len(p.picked))
	for at := p.window.offset; at < end; at++ {
		lines = append(lines, renderRow(s.theme, p.grid, &p.grid.rows[p.picked[at]], &p.layout, at == p.window.cursor, p.marks.has(p.grid.rows[p.picked[at]].Ref), now))
	}
	room := noteRoom(height)
	for len(lines) < height-room {
		lines = append(lines, "")
	}
	return append(lines, renderNote(s.theme, p.row(), width, room)...)
}

// noteRoom is the room below the rows for the note of one: half of it is for what is
// wrong, and half for the next step.
func noteRoom(height int) int {
	switch {
	case height >= 14:
		return 4
	case height >= 8:
		return 2
	}
	return 0
}

// renderNote says what is wrong with a row, and the next step.
func renderNote(t *Theme, row *gridRow, width, height int) []string {
	lines := make([]string, height)
	if row == nil || height == 0 {
		return lines
	}
	say := func(at int, text, before string, style lipgloss.Style) {
		if text == "" {
			return
		}
		parts := wrap(text, width-noteIndent)
		if room := height / 2; len(parts) > room {
			parts = append(parts[:room-1:room-1], strings.Join(parts[room-1:], " "))
		}
		for i, part := range parts {
			lines[at+i] = style.Render(strings.TrimRight(fit(before+part, width), " "))
			before = spaces(noteIndent)
		}
	}
	say(0, row.Note, " "+sign(row.Level)+"  ", t.levels[row.Level])
	say(height/2, row.Next, "  → ", t.plain)
	return lines
}

// noteIndent is the room before a note.
const noteIndent = 4
