package explain

import (
	"strconv"
	"time"

	"github.com/meshctl/meshctl/engine/snapshot"
)

// Table is a list of objects, for painters that know nothing of meshes.
type Table struct {
	Columns []Column
	Rows    []Row
	// Empty says why there are no rows and what to do; set whether or not
	// there are any.
	Empty string
}

// Column says how the cells below a title are meant.
type Column struct {
	Title string
	Kind  ColumnKind
	// Extra columns are the first to go where there is no room for all.
	Extra bool
}

// ColumnKind says what the cells of a column hold.
type ColumnKind uint8

const (
	// Words are sorted as they are spelled.
	Words ColumnKind = iota
	// Number cells begin with digits, or are empty.
	Number
	// Moment cells are RFC 3339 times, or are empty; painters show an age.
	Moment
)

// Row is one object of a Table.
type Row struct {
	// Key tells the row from all others of its table, also from one version of
	// the table to the next.
	Key string
	// Ref is what the row is about; zero if it is nothing that can be described.
	Ref   snapshot.Ref
	Cells []string
	// Clusters that it concerns; none means all.
	Clusters []string
	Labels   map[string]string
	Level    Level
	// Note is a sentence about the row for which there is no column, and Next
	// the next step.
	Note, Next string
}

// Level says how bad it is: a higher one is worse.
type Level uint8

// The levels; those above Fine are the severities of issues.
const (
	Fine Level = iota
	Noted
	Doubtful
	Broken
)

// String returns "ok", "info", "warning" or "error".
func (l Level) String() string {
	if l == Fine {
		return "ok"
	}
	return snapshot.Severity(l - Noted).String()
}

// levelOf is the level of the worst issue; issues are worst first.
func levelOf(issues []snapshot.Issue) Level {
	if len(issues) == 0 {
		return Fine
	}
	return Level(issues[0].Severity) + Noted
}

// words makes columns; a title that ends in # is one of numbers, in @ one of
// moments, and one that begins with + is extra.
func columns(titles ...string) []Column {
	out := make([]Column, len(titles))
	for i, title := range titles {
		c := Column{Title: title}
		if title[0] == '+' {
			c.Extra, c.Title = true, c.Title[1:]
		}
		switch title[len(title)-1] {
		case '#':
			c.Kind, c.Title = Number, c.Title[:len(c.Title)-1]
		case '@':
			c.Kind, c.Title = Moment, c.Title[:len(c.Title)-1]
		}
		out[i] = c
	}
	return out
}

// moment spells a time for a cell; the zero one is empty.
func moment(t time.Time) string {
	if t.IsZero() {
		return ""
	}
	return t.UTC().Format(time.RFC3339)
}

// some spells a number, and nothing for none.
func some(n int) string {
	if n == 0 {
		return ""
	}
	return strconv.Itoa(n)
}
