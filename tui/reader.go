package tui

import (
	"cmp"
	"fmt"

	tea "charm.land/bubbletea/v2"

	"github.com/meshctl/meshctl/engine/explain"
	"github.com/meshctl/meshctl/engine/snapshot"
)

// readerPage is a page of text: an object, its YAML, the help, the commands so far.
type readerPage struct {
	name  string
	title string
	ref   snapshot.Ref
	// words are those of the command that shows the same; kubectl's if yaml.
	words string
	yaml  bool
	// content lays it out; nil while it is made.
	content func(width int) []line
	// gone says that the object is no more.
	gone bool

	lines  []line
	width  int
	window window
	from   int
	// of is the index from which the content was made.
	of *explain.Index
}

// contentMsg is content made off the loop.
type contentMsg struct {
	page    *readerPage
	of      *explain.Index
	title   string
	content func(int) []line
	gone    bool
}

func newDetail(ref snapshot.Ref) *readerPage {
	return &readerPage{
		name: ref.Name, title: ref.Kind.String() + " " + ref.Namespace + "/" + ref.Name, ref: ref,
		words: "describe " + kindWord(ref.Kind) + " " + ref.Name,
	}
}

func newYAML(ref snapshot.Ref) *readerPage {
	info := ref.Kind.Info()
	return &readerPage{
		name: "yaml", title: "YAML of " + ref.Kind.String() + " " + ref.Namespace + "/" + ref.Name, ref: ref, yaml: true,
		words: "get " + info.Resource + "." + info.Group + " " + ref.Name + " -n " + ref.Namespace + " -o yaml",
	}
}

// load makes the content of a page about an object, in a command.
func (p *readerPage) load(x *explain.Index) tea.Cmd {
	if p.ref == (snapshot.Ref{}) || x == nil || p.of == x {
		return nil
	}
	p.of = x
	ref, yaml := p.ref, p.yaml
	return func() tea.Msg {
		if !x.Has(ref) {
			return contentMsg{page: p, of: x, gone: true}
		}
		if yaml {
			return contentMsg{page: p, of: x, content: yamlContent(x, ref)}
		}
		answer := x.Describe(ref).Page()
		return contentMsg{page: p, of: x, title: answer.Title, content: func(width int) []line { return pageLines(answer, width) }}
	}
}

// take takes content, unless there is newer one under way.
func (p *readerPage) take(msg contentMsg) {
	if p.of != msg.of {
		return
	}
	p.gone = msg.gone
	if !msg.gone {
		p.content, p.width = msg.content, 0
		p.title = cmp.Or(msg.title, p.title)
	}
}

func (p *readerPage) crumb() string { return p.name }

func (p *readerPage) heading(*shared) string {
	text := snapshot.Clean(p.title)
	switch {
	case p.gone:
		text += " (deleted; this was its last state)"
	case p.content == nil:
		text += " …"
	}
	return text
}

func (p *readerPage) position() string {
	if w := &p.window; w.length > w.height {
		return fmt.Sprintf("%d-%d of %d", w.offset+1, w.offset+w.height, w.length)
	}
	return ""
}

func (p *readerPage) refresh(_ *shared, width, height int) {
	if p.content != nil && p.width != width {
		p.lines, p.width = p.content(width-2), width
	}
	p.window.set(len(p.lines), height)
}

func (p *readerPage) selected(*shared) snapshot.Ref {
	if p.window.cursor < len(p.lines) {
		return p.lines[p.window.cursor].ref
	}
	return snapshot.Ref{}
}

func (p *readerPage) press(v verb, s *shared) action {
	if p.window.move(v) {
		return nil
	}
	switch v {
	case verbOpen:
		return open{p.selected(s)}
	case verbYAML:
		return openYAML{p.ref}
	case verbLeft:
		p.from = max(p.from-8, 0)
	case verbRight:
		p.from += 8
	}
	return nil
}

func (p *readerPage) disabled(v verb, s *shared) string {
	switch v {
	case verbOpen:
		ref := p.selected(s)
		switch {
		case ref == (snapshot.Ref{}):
			return "this line has nothing to open; lines with › have"
		case s.latest.Index == nil || !s.latest.Index.Has(ref):
			return ref.String() + " cannot be shown"
		case ref == p.ref:
			return "this is the page of it"
		}
	case verbYAML, verbEdit, verbDelete:
		switch {
		case p.ref == (snapshot.Ref{}):
			return "this page is not about an object"
		case p.yaml && v == verbYAML:
			return "this is the YAML"
		}
	case verbSort, verbReverse, verbFilter, verbProblems:
		return "this works on list pages only"
	}
	return ""
}

func (p *readerPage) commandLine(s *shared) string {
	switch {
	case p.words == "":
		return ""
	case p.yaml:
		return s.source.Kubectl(p.words)
	}
	return s.source.Command(p.words)
}

func (p *readerPage) paint(s *shared, width, height int) []string {
	if p.content == nil {
		if p.gone {
			return []string{"", "  It no longer exists. esc goes back."}
		}
		return []string{"", "  Loading …"}
	}
	var out []string
	end := min(p.window.offset+height, len(p.lines))
	for i := p.window.offset; i < end; i++ {
		out = append(out, p.lines[i].paint(s.theme, i == p.window.cursor, p.from, width))
	}
	return out
}
