package cmdutil

import (
	"fmt"
	"io"
	"strings"

	"github.com/meshctl/meshctl/engine/explain"
)

// PrintPage paints a page: its title, each section, the issues last, where the
// eye of a reader in a hurry ends up.
func PrintPage(out io.Writer, page explain.Page) error {
	var b strings.Builder
	fmt.Fprintf(&b, "%s\n", Clean(page.Title))
	for _, s := range page.Sections {
		if err := printSection(&b, s); err != nil {
			return err
		}
	}
	count := "none"
	if len(page.Issues) > 0 {
		count = CountIssues(page.Issues)
	}
	fmt.Fprintf(&b, "\nIssues: %s\n", count)
	if err := PrintIssues(&b, "  ", page.Issues); err != nil {
		return err
	}
	_, err := io.WriteString(out, b.String())
	return err
}

func printSection(b *strings.Builder, s explain.Section) error {
	if s.Title != "" {
		fmt.Fprintf(b, "\n%s\n", Clean(s.Title))
	}
	if s.Text != "" {
		fmt.Fprintf(b, "  %s\n", Clean(s.Text))
	}
	table := Table{Header: s.Header, Rows: s.Rows, Indent: "  "}
	return table.Print(b)
}
