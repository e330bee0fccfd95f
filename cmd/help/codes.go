package help

import (
	_ "embed"
	"fmt"
	"slices"
	"strings"
	"sync"

	"github.com/spf13/cobra"
	"sigs.k8s.io/yaml"

	"github.com/meshctl/meshctl/cmd/cmdutil"
	"github.com/meshctl/meshctl/engine/snapshot"
)

//go:embed codes.yaml
var codesYAML []byte

// CodesTopic is the help topic that lists the codes.
const CodesTopic = "codes"

const codesIntro = `The codes of issues. Each list of issues names the code in brackets:

  meshctl help CODE

says what it means, how it comes about, and what to do. Programs look at codes,
which stay the same; sentences may change with each version. The severity is the
worst that an issue of the code has.`

// codeHelp explains a code of issues.
type codeHelp struct {
	Code     snapshot.Code `json:"code"`
	Severity string        `json:"severity"`
	// Means is a sentence; Because and Do are one or more.
	Means   string `json:"means"`
	Because string `json:"because"`
	Do      string `json:"do"`
	// Example is the message of such an issue.
	Example string `json:"example"`
}

// theme groups codes under a title.
type theme struct {
	Title string     `json:"title"`
	Codes []codeHelp `json:"codes"`
}

// themes lists all of them, as codes.yaml has them, the worst first in each.
var themes = sync.OnceValue(func() []theme {
	var all []theme
	if err := yaml.UnmarshalStrict(codesYAML, &all); err != nil {
		panic(fmt.Sprintf("codes.yaml: %v", err))
	}
	order := []string{snapshot.Error.String(), snapshot.Warning.String(), snapshot.Info.String()}
	for _, t := range all {
		slices.SortStableFunc(t.Codes, func(a, b codeHelp) int {
			return slices.Index(order, a.Severity) - slices.Index(order, b.Severity)
		})
	}
	return all
})

// codeOf finds a code, in any case of letters, and the title of its theme; nil if there is none.
func codeOf(word string) (*codeHelp, string) {
	for _, t := range themes() {
		for i := range t.Codes {
			if strings.EqualFold(string(t.Codes[i].Code), word) {
				return &t.Codes[i], t.Title
			}
		}
	}
	return nil, ""
}

func codeNames() []string {
	var names []string
	for _, t := range themes() {
		for _, c := range t.Codes {
			names = append(names, string(c.Code))
		}
	}
	return names
}

// completeCodes offers the codes that begin with what is typed, in any case of letters; none if nothing is typed.
func completeCodes(typed string) []string {
	var names []string
	for _, t := range themes() {
		for _, c := range t.Codes {
			if typed != "" && len(typed) <= len(c.Code) && strings.EqualFold(string(c.Code[:len(typed)]), typed) {
				names = append(names, cobra.CompletionWithDesc(string(c.Code), plain(c.Means)))
			}
		}
	}
	return names
}

func codeSections() []section {
	var out []section
	for _, t := range themes() {
		s := section{title: t.Title}
		for _, c := range t.Codes {
			s.rows = append(s.rows, row{about: string(c.Code), cells: []string{c.Severity, c.Means}})
		}
		out = append(out, s)
	}
	return out
}

// printCode prints the page of a code.
func (c *codeHelp) print(s *cmdutil.Streams, theme string, format cmdutil.Format) error {
	parts := [][2]string{{"What it means", c.Means}, {"How it comes about", c.Because}, {"What to do", c.Do}}
	example := fmt.Sprintf("%s (%s)", c.Example, c.Code)
	var b strings.Builder
	if format == formatMarkdown {
		fmt.Fprintf(&b, "# %s\n\nSeverity: %s\n", c.Code, c.Severity)
		for _, part := range parts {
			fmt.Fprintf(&b, "\n## %s\n\n%s\n", part[0], part[1])
		}
		fmt.Fprintf(&b, "\n## Example\n\n    %s\n", example)
	} else {
		painter := cmdutil.Painter{Width: min(max(s.Width, 40), widest)}
		fmt.Fprintf(&b, "%s (%s, %s)\n", c.Code, c.Severity, strings.ToLower(theme[:1])+theme[1:])
		for _, part := range parts {
			fmt.Fprintf(&b, "\n%s\n", part[0])
			painter.Paragraph(&b, "  ", "  ", plain(part[1]))
		}
		b.WriteString("\nExample\n")
		painter.Paragraph(&b, "  ", "    ", example)
		b.WriteString("\nWhere it is:   meshctl describe problems\nAll the codes: meshctl help codes\n")
	}
	_, err := s.Out.Write([]byte(b.String()))
	return err //nolint:wrapcheck // the stream of the command
}
