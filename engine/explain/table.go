package explain

import (
	"slices"
	"strconv"
	"time"

	"k8s.io/apimachinery/pkg/util/duration"

	"github.com/meshctl/meshctl/engine/snapshot"
)

// Table is a list of objects. What prints it need not know their kind.
type Table struct {
	Columns []Column
	Rows    []Row
	// Empty says why there are no rows and what to do; set whether or not
	// there are any.
	Empty string
}

// Column describes the cells below a title.
type Column struct {
	Title  string
	Format Format
	// Priority is that of additionalPrinterColumns of Kubernetes: without room for all
	// columns, those of the highest priority are left out first; those of 0 stay.
	Priority int
	// Sentence columns are cut, down to MinSentence, before another column is left out.
	Sentence bool
	// Live columns change with each reading: that is no change of the object.
	Live bool
}

// MinSentence is the least width of a column of sentences.
const MinSentence = 24

// Format says what the cells of a column hold.
type Format uint8

const (
	// Text cells are sorted as text.
	Text Format = iota
	// Number cells begin with digits, or are empty.
	Number
	// Since cells are RFC 3339 times in the past, or empty; they are shown as an age.
	Since
	// Until cells are RFC 3339 times, or empty; they are shown as the time left.
	Until
)

// Row is one object of a Table.
type Row struct {
	// Key identifies the row in its table, and in later versions of the table.
	Key string
	// Ref is what the row is about; zero if it is nothing that can be described.
	Ref   snapshot.Ref
	Cells []string
	// Item is the row as a value that marshals to JSON.
	Item any
	// Clusters that it concerns; none means all.
	Clusters []string
	Labels   map[string]string
	Level    Level
	// Note is a sentence about the row for which there is no column, and Next
	// the next step.
	Note, Next string
}

// Level is the severity of the worst issue of a row, or none.
type Level uint8

// The levels; those above OK are the severities of issues.
const (
	OK Level = iota
	Info
	Warning
	Error
)

// String returns "ok", "info", "warning" or "error".
func (l Level) String() string {
	if l == OK {
		return "ok"
	}
	return snapshot.Severity(l - Info).String()
}

// LevelOf is the level of a severity.
func LevelOf(s snapshot.Severity) Level { return Level(s) + Info }

// worstLevel is the level of the worst issue; issues are worst first. What passes by itself has none.
func worstLevel(issues []snapshot.Issue) Level {
	issues = lasting(issues)
	if len(issues) == 0 {
		return OK
	}
	return LevelOf(issues[0].Severity)
}

// setIssue puts the first of issues, which is the worst one, into the row.
func (r *Row) setIssue(issues []snapshot.Issue) {
	r.Level = worstLevel(issues)
	if issues = lasting(issues); len(issues) > 0 {
		r.Note, r.Next = issues[0].Message, issues[0].Hint
	}
}

// column is a column of a table of items T.
type column[T any] struct {
	Column
	cell func(*T) string
}

// text makes a column; lower priorities stay longer.
func text[T any](title string, priority int, cell func(*T) string) column[T] {
	return column[T]{Column{Title: title, Priority: priority}, cell}
}

func number[T any](title string, priority int, cell func(*T) string) column[T] {
	return column[T]{Column{Title: title, Priority: priority, Format: Number}, cell}
}

func since[T any](title string, priority int, at func(*T) time.Time) column[T] {
	return column[T]{Column{Title: title, Priority: priority, Format: Since}, func(t *T) string { return timeText(at(t)) }}
}

func until[T any](title string, priority int, at func(*T) time.Time) column[T] {
	return column[T]{Column{Title: title, Priority: priority, Format: Until}, func(t *T) string { return timeText(at(t)) }}
}

func sentence[T any](title string, cell func(*T) string) column[T] {
	return column[T]{Column{Title: title, Sentence: true}, cell}
}

// newTable lists items: row makes what a row has beside its cells.
func newTable[T any](empty string, columns []column[T], items []T, row func(*T) Row) Table {
	t := Table{Empty: empty, Columns: make([]Column, len(columns)), Rows: make([]Row, len(items))}
	for i, c := range columns {
		t.Columns[i] = c.Column
	}
	for i := range items {
		item := &items[i]
		r := row(item)
		r.Item, r.Cells = item, make([]string, len(columns))
		for j, c := range columns {
			r.Cells[j] = c.cell(item)
		}
		t.Rows[i] = r
	}
	return t
}

// Fit chooses the columns for which there is room, by index: widths are those
// of the columns, gap is what stands between two.
func Fit(columns []Column, widths []int, gap, room int) []int {
	chosen := make([]int, len(columns))
	total := -gap
	for i, c := range columns {
		chosen[i] = i
		total += gap + c.least(widths[i])
	}
	for total > room {
		// Of equal priorities the last one goes.
		out := -1
		for at, i := range chosen {
			if p := columns[i].Priority; p > 0 && (out < 0 || p >= columns[chosen[out]].Priority) {
				out = at
			}
		}
		if out < 0 {
			break
		}
		total -= gap + columns[chosen[out]].least(widths[chosen[out]])
		chosen = slices.Delete(chosen, out, out+1)
	}
	return chosen
}

// least is the least width of a column.
func (c Column) least(width int) int {
	if c.Sentence {
		return min(width, max(len(c.Title), MinSentence))
	}
	return width
}

// Spell is a cell as it is shown: with ages instead of times.
func (c Column) Spell(cell string, now time.Time) string {
	if c.Format != Since && c.Format != Until {
		return cell
	}
	at, err := time.Parse(time.RFC3339, cell)
	if err != nil {
		return cell
	}
	return c.SpellTime(at, now)
}

// SpellTime is Spell for the time that a cell holds.
func (c Column) SpellTime(at, now time.Time) string {
	switch {
	case c.Format == Since:
		return duration.HumanDuration(max(now.Sub(at), 0))
	case at.After(now):
		return "in " + duration.HumanDuration(at.Sub(now))
	}
	return duration.HumanDuration(now.Sub(at)) + " ago"
}

// timeText is a time as text; the zero time is empty.
func timeText(t time.Time) string {
	if t.IsZero() {
		return ""
	}
	return t.UTC().Format(time.RFC3339)
}

// some is a number as text; 0 is empty.
func some(n int) string {
	if n == 0 {
		return ""
	}
	return strconv.Itoa(n)
}

// partly is "3" for all of three, or "2 of 3".
func partly(n, all int) string {
	if n == all {
		return strconv.Itoa(n)
	}
	return strconv.Itoa(n) + " of " + strconv.Itoa(all)
}

// lift makes columns of an item out of those of a part of it.
func lift[T, U any](columns []column[U], part func(*T) *U) []column[T] {
	out := make([]column[T], len(columns))
	for i, c := range columns {
		out[i] = column[T]{c.Column, func(t *T) string { return c.cell(part(t)) }}
	}
	return out
}
