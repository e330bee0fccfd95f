package tui

import (
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/charmbracelet/x/ansi"

	"github.com/meshctl/meshctl/engine/explain"
	"github.com/meshctl/meshctl/engine/snapshot"
)

// grid is a table prepared for painting: clean cells, widths, and what filters
// and sorting use. It is immutable.
type grid struct {
	columns []explain.Column
	rows    []gridRow
	widths  []int
	empty   string
}

type gridRow struct {
	explain.Row
	// text is all cells, in lower case, and lasting those of columns that do not change with each reading.
	text, lasting string
	// numbers and times are the cells as values, for sorting.
	values []float64
	news   news
}

// news says that a row is new or changed, and since when.
type news struct {
	sign string
	at   time.Time
}

const (
	signNew     = "+"
	signChanged = "Δ"
	// signMarked stands before a row that is marked, in place of its news.
	signMarked = "*"
	// newsFor is how long a row is news.
	newsFor = 20 * time.Second
)

// timeWidths are the room for an age, and for how far a time is ahead.
var timeWidths = map[explain.Format]int{explain.Since: len("7y364d"), explain.Until: len("7d23h ago")}

func newGrid(t explain.Table) *grid {
	g := &grid{columns: t.Columns, rows: make([]gridRow, len(t.Rows)), widths: make([]int, len(t.Columns)), empty: t.Empty}
	for i, c := range t.Columns {
		g.widths[i] = len(c.Title)
	}
	for i, row := range t.Rows {
		clean := slices.Clone(row.Cells)
		values := make([]float64, len(clean))
		for j, cell := range clean {
			cell = snapshot.Clean(cell)
			clean[j] = cell
			switch g.columns[j].Format {
			case explain.Since, explain.Until:
				if at, err := time.Parse(time.RFC3339, cell); err == nil {
					values[j] = float64(at.Unix())
				}
				g.widths[j] = max(g.widths[j], timeWidths[g.columns[j].Format])
				continue
			case explain.Number:
				values[j] = leadingNumber(cell)
			}
			g.widths[j] = max(g.widths[j], textWidth(cell))
		}
		row.Cells, row.Note, row.Next = clean, snapshot.Clean(row.Note), snapshot.Clean(row.Next)
		g.rows[i] = gridRow{Row: row, text: strings.ToLower(strings.Join(clean, " ")), lasting: lasting(t.Columns, clean), values: values}
	}
	return g
}

// lasting are the cells of which another text is a change.
func lasting(columns []explain.Column, cells []string) string {
	var out []string
	for i, cell := range cells {
		if !columns[i].Live {
			out = append(out, cell)
		}
	}
	return strings.Join(out, " ")
}

// noteNews notes the rows that are new or changed since another grid; none
// if there was no other.
func (g *grid) noteNews(was *grid, now time.Time) {
	if was == nil {
		return
	}
	before := make(map[string]*gridRow, len(was.rows))
	for i := range was.rows {
		before[was.rows[i].Key] = &was.rows[i]
	}
	for i := range g.rows {
		row := &g.rows[i]
		switch old := before[row.Key]; {
		case old == nil:
			row.news = news{signNew, now}
		case old.lasting != row.lasting:
			row.news = news{signChanged, now}
		default:
			row.news = old.news
		}
	}
}

// leadingNumber is the number that a cell begins with.
func leadingNumber(s string) float64 {
	n := 0.0
	for _, r := range s {
		if r < '0' || r > '9' {
			break
		}
		n = n*10 + float64(r-'0')
	}
	return n
}

// textWidth is how many columns of the screen a clean text takes.
func textWidth(s string) int {
	for i := range len(s) {
		if s[i] >= 0x80 {
			return ansi.StringWidth(s)
		}
	}
	return len(s)
}

// order says how rows are sorted; the zero order keeps the table's own.
type order struct {
	column int // from 1
	down   bool
}

// query says which rows are shown, and in what order.
type query struct {
	filter  filter
	cluster string
	// problems keeps only rows with warnings and errors.
	problems bool
	order    order
}

// pick lists the rows that a query keeps, by index, in its order.
func (g *grid) pick(q query) []int {
	keep := q.filter.matcher(g)
	out := make([]int, 0, len(g.rows))
	for i := range g.rows {
		row := &g.rows[i]
		switch {
		case q.problems && row.Level < explain.Warning:
		case q.cluster != "" && len(row.Clusters) > 0 && !slices.Contains(row.Clusters, q.cluster):
		case !keep(i):
		default:
			out = append(out, i)
		}
	}
	c := q.order.column - 1
	if c < 0 || c >= len(g.columns) {
		return out
	}
	text := g.columns[c].Format == explain.Text
	slices.SortStableFunc(out, func(a, b int) int {
		x, y := &g.rows[a], &g.rows[b]
		n := 0
		switch {
		case text:
			n = strings.Compare(x.Cells[c], y.Cells[c])
		case x.values[c] < y.values[c]:
			n = -1
		case x.values[c] > y.values[c]:
			n = 1
		}
		if q.order.down {
			return -n
		}
		return n
	})
	return out
}

// clusters lists the clusters of all rows, ascending.
func (g *grid) clusters() []string {
	seen := map[string]bool{}
	var out []string
	for i := range g.rows {
		for _, name := range g.rows[i].Clusters {
			if !seen[name] {
				seen[name] = true
				out = append(out, name)
			}
		}
	}
	slices.Sort(out)
	return out
}

// compilePattern reads a pattern that people type: a regular expression, or a
// plain text where it is none.
func compilePattern(text string) *regexp.Regexp {
	if re, err := regexp.Compile("(?i)" + text); err == nil {
		return re
	}
	return regexp.MustCompile("(?i)" + regexp.QuoteMeta(text))
}
