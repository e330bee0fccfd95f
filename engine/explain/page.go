package explain

import "github.com/meshctl/meshctl/engine/snapshot"

// Description is what describe shows of an object. It marshals to JSON.
type Description interface {
	// Page is the same as text.
	Page() Page
}

// Page is a Description in sections. What prints it need not know its kind.
type Page struct {
	// Title names the object.
	Title    string
	Sections []Section
	// Issues are what is wrong or worth knowing, worst first.
	Issues []snapshot.Issue
	// NotRead is what was not looked at and may decide otherwise: to be said first. Empty if nothing was left out. See Index.NotRead.
	NotRead string
}

// Section is a table with a title.
type Section struct {
	Title string
	// Text is a sentence before the table; may be empty.
	Text string
	// Header names the columns; nil for rows of name and value.
	Header []string
	// Rows have a cell for each column; a single space means the same as above.
	Rows [][]string
	// Refs are the objects of the rows, so that a reader can open them: none, or one
	// for each row, of which some may be zero.
	Refs []snapshot.Ref
}

// above is a cell that repeats the one above it. It is printed as blank, and a cell
// without a value as a dash.
const above = " "

// facts is a section of names and values; values that are empty are left out.
func facts(title string, pairs ...[2]string) Section {
	s := Section{Title: title}
	for _, pair := range pairs {
		if pair[1] != "" {
			s.Rows = append(s.Rows, []string{pair[0], pair[1]})
		}
	}
	return s
}
