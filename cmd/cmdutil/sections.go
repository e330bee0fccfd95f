package cmdutil

import (
	"io"
	"strings"

	"github.com/meshctl/meshctl/engine/explain"
)

// PrintSections paints a page without its issues, for pages that have none to speak of.
func PrintSections(out io.Writer, p Painter, page explain.Page) error {
	var b strings.Builder
	p.Paragraph(&b, "", "  ", Clean(page.Title))
	for _, s := range page.Sections {
		if err := p.section(&b, s); err != nil {
			return err
		}
	}
	_, err := io.WriteString(out, b.String())
	return err
}
