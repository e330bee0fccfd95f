package tui

import (
	"cmp"
	"fmt"
	"maps"
	"slices"

	"github.com/meshctl/meshctl/engine/snapshot"
)

// marks are the objects of a list page that the operator has marked. They are known by their names, so that marks stay
// with objects when rows are sorted, filtered or read anew. The zero value has none.
type marks struct {
	refs map[snapshot.Ref]bool
	// hidden is how many of them are in no row that the page shows, once they are counted.
	hidden  int
	counted bool
}

func (k *marks) has(ref snapshot.Ref) bool { return k.refs[ref] }

func (k *marks) count() int { return len(k.refs) }

// list lists them, ascending.
func (k *marks) list() []snapshot.Ref {
	return slices.SortedFunc(maps.Keys(k.refs), snapshot.Ref.Compare)
}

func (k *marks) set(ref snapshot.Ref, marked bool) {
	k.counted = false
	switch {
	case !marked:
		delete(k.refs, ref)
	case k.refs == nil:
		k.refs = map[snapshot.Ref]bool{ref: true}
	default:
		k.refs[ref] = true
	}
}

func (k *marks) clear() { *k = marks{} }

// keep unmarks objects that no row of the table is of any more.
func (k *marks) keep(g *grid) {
	if len(k.refs) == 0 {
		return
	}
	there := make(map[snapshot.Ref]bool, len(k.refs))
	for i := range g.rows {
		if ref := g.rows[i].Ref; k.refs[ref] {
			there[ref] = true
		}
	}
	k.refs, k.counted = there, false
}

// see counts those that are in none of the rows that are shown.
func (k *marks) see(g *grid, picked []int) {
	k.counted, k.hidden = true, 0
	if len(k.refs) == 0 {
		return
	}
	seen := map[snapshot.Ref]bool{}
	for _, i := range picked {
		if ref := g.rows[i].Ref; k.refs[ref] {
			seen[ref] = true
		}
	}
	k.hidden = len(k.refs) - len(seen)
}

// to marks the rows from the nearest marked one, above the cursor or else below it, to the cursor: of the objects that may be
// marked. Where none that is shown is marked, it marks all that are shown.
func (k *marks) to(g *grid, picked []int, cursor int, may func(snapshot.Ref) bool) {
	first, last := 0, len(picked)-1
	marked := func(at int) bool { return k.refs[g.rows[picked[at]].Ref] }
	if from, found := nearest(cursor, len(picked), marked); found {
		first, last = min(from, cursor), max(from, cursor)
	}
	for at := first; at <= last; at++ {
		if ref := g.rows[picked[at]].Ref; may(ref) {
			k.set(ref, true)
		}
	}
}

// nearest is the nearest row above one, or else below it, for which something is so.
func nearest(cursor, length int, is func(int) bool) (at int, found bool) {
	for at := cursor - 1; at >= 0; at-- {
		if is(at) {
			return at, true
		}
	}
	for at := cursor; at < length; at++ {
		if is(at) {
			return at, true
		}
	}
	return 0, false
}

// title says how many there are; empty if there are none.
func (k *marks) title() string {
	switch {
	case len(k.refs) == 0:
		return ""
	case k.hidden > 0:
		return fmt.Sprintf(" %d marked, %d not shown", len(k.refs), k.hidden)
	}
	return fmt.Sprintf(" %d marked", len(k.refs))
}

// chosen are the objects that a key of a dashboard is for: those that are marked on the list on the screen or, where none is,
// the one that the page is about or the cursor is on.
func chosen(m *Model) []snapshot.Ref {
	if p, lists := m.top().(*listPage); lists && p.marks.count() > 0 {
		return p.marks.list()
	}
	return []snapshot.Ref{m.object()}
}

// meant is what a key is for on the page on the screen: space marks rows where objects can be changed, and pages down elsewhere.
func meant(m *Model, v verb) verb {
	p, lists := m.top().(*listPage)
	if v == verbMark && (!lists || m.pane.focused || !p.marksRows(&m.shared)) {
		return verbPageDown
	}
	return v
}

// marksRows reports whether the page has an object that can be marked, also in rows that are not shown.
func (p *listPage) marksRows(s *shared) bool {
	if p.grid == nil {
		return false
	}
	for i := range p.grid.rows {
		if s.marks(p.grid.rows[i].Ref) {
			return true
		}
	}
	return false
}

// marks reports whether an object can be marked: marks are for what can be changed.
func (s *shared) marks(ref snapshot.Ref) bool {
	return s.changes(ref) && s.latest.Index != nil && s.latest.Index.Has(ref)
}

// notMarked says why the row under the cursor or, for a range, any row that is shown cannot be marked; empty if it can.
func (p *listPage) notMarked(v verb, s *shared) string {
	changer, can := s.source.(Changer)
	row := p.row()
	switch {
	case !can:
		return "marks are for deleting several objects, and this dashboard is read-only"
	case row == nil:
		return "there is no row"
	case v == verbMarkTo:
		if slices.ContainsFunc(p.picked, func(i int) bool { return s.marks(p.grid.rows[i].Ref) }) {
			return ""
		}
		return "none of these rows is of an object that can be changed, so none can be marked"
	case p.marks.has(row.Ref) || s.marks(row.Ref):
		return ""
	case row.Ref == (snapshot.Ref{}):
		return "there is nothing to mark in this row"
	}
	return cmp.Or(changer.Refuses(row.Ref), row.Ref.String()+" cannot be changed here, so it cannot be marked")
}

// notWithMarks says why a key does nothing while objects are marked; empty if it does something.
func (p *listPage) notWithMarks(v verb) string {
	n, row := p.marks.count(), p.row()
	if v != verbEdit || n == 1 && row != nil && p.marks.has(row.Ref) {
		return ""
	}
	if n == 1 {
		return "another one is marked, e edits one: esc unmarks; or enter, then e"
	}
	return fmt.Sprintf("%d are marked, e edits one: esc unmarks; or enter, then e", n)
}
