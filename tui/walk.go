package tui

import (
	"strings"

	tea "charm.land/bubbletea/v2"

	"github.com/meshctl/meshctl/engine/explain"
	"github.com/meshctl/meshctl/engine/snapshot"
)

// walkPage is the graph of who calls what, around one service or workload: its neighbours stand left and right of it, and are walked to by the
// arrow keys.
type walkPage struct {
	ref snapshot.Ref
	// side is the column of the cursor: left, the middle, or right.
	side  int
	sides [2]window
	// of is what is shown; nil while it is loaded. Index is the one that it is from, or is being loaded from.
	of    *explain.Neighbours
	index *explain.Index
}

// The columns.
const (
	sideLeft = iota - 1
	sideMiddle
	sideRight
)

// walkedMsg are the neighbours of what a walkPage is around.
type walkedMsg struct {
	page  *walkPage
	index *explain.Index
	of    *explain.Neighbours
}

// walked: the page is around something else, which has to be loaded.
type walked struct{}

func (walked) isAction() {}

// walkFrom opens the graph around what the cursor or the page of a dashboard is on.
func walkFrom(m *Model) tea.Cmd {
	ref := m.object()
	if !explain.HasNeighbours(ref.Kind) {
		m.notify("the graph is of services and workloads; go to one of them first")
		return nil
	}
	return m.push(&walkPage{ref: ref})
}

// load returns what loads the neighbours; nil if they are there.
func (p *walkPage) load(x *explain.Index) tea.Cmd {
	if x == nil || p.index == x {
		return nil
	}
	p.index = x
	ref := p.ref
	return func() tea.Msg { return walkedMsg{page: p, index: x, of: explain.NeighboursOf(x, ref)} }
}

func (p *walkPage) receive(msg walkedMsg) {
	if p.index == msg.index && p.ref == msg.of.Ref {
		p.of = msg.of
	}
}

// list are the neighbours of the column of the cursor; none in the middle.
func (p *walkPage) list() ([]explain.Neighbour, *window) {
	switch {
	case p.of == nil || p.side == sideMiddle:
		return nil, &window{}
	case p.side == sideLeft:
		return p.of.Left, &p.sides[0]
	}
	return p.of.Right, &p.sides[1]
}

func (p *walkPage) crumb() string { return "graph" }

func (p *walkPage) title(*shared) string {
	return "Graph around " + snapshot.Clean(p.ref.Kind.String()+" "+p.ref.Name)
}

func (p *walkPage) position() string { return "" }

func (p *walkPage) selected(*shared) snapshot.Ref {
	if list, w := p.list(); w.cursor < len(list) {
		return list[w.cursor].Ref
	}
	return p.ref
}

func (p *walkPage) press(v verb, s *shared) action {
	if list, w := p.list(); len(list) > 0 && w.move(v) {
		return nil
	}
	switch v {
	case verbOpen:
		return open{p.selected(s)}
	case verbYAML:
		return openYAML{[]snapshot.Ref{p.selected(s)}}
	case verbLeft:
		return p.step(sideLeft, s)
	case verbRight:
		return p.step(sideRight, s)
	}
	return nil
}

// step moves the cursor to the next column or, at the outermost, walks to the neighbour there.
func (p *walkPage) step(to int, s *shared) action {
	if p.side != to {
		p.side += to
		return nil
	}
	p.ref, p.of, p.index, p.sides = p.selected(s), nil, nil, [2]window{}
	return walked{}
}

func (p *walkPage) disabled(v verb, s *shared) string {
	var empty bool
	if p.of != nil {
		empty = v == verbLeft && p.side == sideMiddle && len(p.of.Left) == 0 || v == verbRight && p.side == sideMiddle && len(p.of.Right) == 0
	}
	switch ref := p.selected(s); {
	case (v == verbLeft || v == verbRight) && p.of == nil:
		return "it is being loaded"
	case empty:
		return "there is nothing on this side"
	case (v == verbLeft && p.side == sideLeft || v == verbRight && p.side == sideRight) && !explain.HasNeighbours(ref.Kind):
		return "the graph ends here"
	case (v == verbOpen || v == verbYAML || v == verbEdit || v == verbDelete) && (s.latest.Index == nil || !s.latest.Index.Has(ref)):
		return "there is nothing more to show for it"
	case v == verbMarkTo || v == verbSort || v == verbReverse || v == verbProblems || v == verbWide || v == verbNextPage || v == verbPreviousPage:
		return "this works on list pages only"
	case v == verbFilter || v == verbNextMatch || v == verbPreviousMatch:
		return "the graph has no search; a list has, and x shows the graph around a row"
	}
	return ""
}

func (p *walkPage) commandLine(s *shared) string {
	if p.ref.Kind == snapshot.Destination {
		return s.source.Command("graph " + p.ref.Name)
	}
	return ""
}

func (p *walkPage) narrow(string) error { return nil }
func (p *walkPage) narrowed() string    { return "" }

func (p *walkPage) keys(*shared) []hint {
	return []hint{{verbLeft, "left"}, {verbRight, "right"}, {verbOpen, "open"}, {verbWhy, "ask why"}, {verbBack, "back"}}
}

// linesEach is how many lines a neighbour takes: its name, and what leads there.
const linesEach = 2

func (p *walkPage) refresh(_ *shared, _, height int) {
	if p.of == nil {
		return
	}
	for i, list := range [][]explain.Neighbour{p.of.Left, p.of.Right} {
		p.sides[i].set(len(list), (height-1)/linesEach)
	}
}

func (p *walkPage) render(s *shared, width, height int) []string {
	if p.of == nil {
		return []string{"", "  Loading …"}
	}
	const between = " → "
	side := (width - 2*len(" - ")) * 3 / 8
	middle := width - 2*side - 2*len(" - ")
	left := p.column(s, p.of.Left, &p.sides[0], p.side == sideLeft, side, height-1)
	right := p.column(s, p.of.Right, &p.sides[1], p.side == sideRight, side, height-1)
	own := []string{p.name(s, &p.of.GraphNode, p.side == sideMiddle, middle), s.theme.faint.Render(fit("  "+place(&p.of.GraphNode), middle))}
	titles := [2]string{"CALLED BY", "GOES TO"}
	if p.ref.Kind == snapshot.Workload {
		titles = [2]string{"ITS SERVICES", "CALLS"}
	}
	lines := []string{s.theme.title.Render(strings.TrimRight(fit(titles[0], side+3)+spaces(middle+3)+titles[1], " "))}
	for i := range height - 1 {
		cell := func(of []string, width int) string {
			if i < len(of) {
				return of[i]
			}
			return spaces(width)
		}
		arrow := [2]string{spaces(3), spaces(3)}
		if i == 0 && len(p.of.Left) > 0 {
			arrow[0] = between
		}
		if i == 0 && len(p.of.Right) > 0 {
			arrow[1] = between
		}
		lines = append(lines, strings.TrimRight(cell(left, side)+arrow[0]+cell(own, middle)+arrow[1]+cell(right, side), " "))
	}
	return lines
}

// column are the neighbours of one side that there is room for.
func (p *walkPage) column(s *shared, list []explain.Neighbour, w *window, focused bool, width, height int) []string {
	if len(list) == 0 {
		return []string{s.theme.faint.Render(fit("  nothing", width))}
	}
	var out []string
	for i := w.offset; i < len(list) && len(out)+linesEach <= height; i++ {
		n := &list[i]
		out = append(out, p.name(s, &n.GraphNode, focused && i == w.cursor, width))
		text := sign(n.Level) + " " + snapshot.Clean(n.Edge)
		if n.Crosses {
			text = sign(n.Level) + " ⇄ " + snapshot.Clean(n.Cluster+": "+n.Edge)
		}
		style := s.theme.levels[n.Level]
		if n.Level == explain.OK {
			style = s.theme.faint
		}
		out = append(out, style.Render(fit(text, width)))
	}
	return out
}

// name is that of a node, with the cursor.
func (p *walkPage) name(s *shared, n *explain.GraphNode, current bool, width int) string {
	text := "  " + snapshot.Clean(n.Name)
	if current {
		return s.theme.selected.Render(fit(">"+text[1:], width))
	}
	return s.theme.plain.Render(fit(text, width))
}

func place(n *explain.GraphNode) string {
	return snapshot.Clean(strings.Trim(n.Namespace+", "+n.Cluster, ", "))
}
