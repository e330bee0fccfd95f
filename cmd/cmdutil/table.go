package cmdutil

import (
	"bytes"
	"fmt"
	"io"
	"strings"
	"text/tabwriter"
)

// Table paints rows in columns. Cells are cleaned; empty ones show as "-" so
// that a column can be cut out by a script, a cell of one space stays blank.
type Table struct {
	// Header names the columns in capitals, as kubectl does; none paints no header.
	Header []string
	Rows   [][]string
	// Indent goes before each line.
	Indent string
}

// TableGap is the least that stands between two columns.
const TableGap = 3

// Add appends a row.
func (t *Table) Add(cells ...string) { t.Rows = append(t.Rows, cells) }

// Print writes the table. No line ends in blanks, so that a diff of two tables
// shows what differs.
func (t *Table) Print(out io.Writer) error {
	var text bytes.Buffer
	w := tabwriter.NewWriter(&text, 0, 8, TableGap, ' ', 0)
	if len(t.Header) > 0 {
		t.line(w, t.Header)
	}
	for _, row := range t.Rows {
		t.line(w, row)
	}
	if err := w.Flush(); err != nil {
		return fmt.Errorf("print table: %w", err)
	}
	for line := range bytes.Lines(text.Bytes()) {
		if _, err := out.Write(append(bytes.TrimRight(line, " \n"), '\n')); err != nil {
			return fmt.Errorf("print table: %w", err)
		}
	}
	return nil
}

func (t *Table) line(w io.Writer, cells []string) {
	clean := make([]string, len(cells))
	for i, text := range cells {
		clean[i] = cell(text)
	}
	// tabwriter keeps the first error for Flush.
	_, _ = fmt.Fprintln(w, t.Indent+strings.Join(clean, "\t"))
}

// cell is the text of a cell: clean, and a dash if it is empty.
func cell(text string) string {
	if text = Clean(text); text == "" {
		return "-"
	}
	return text
}
