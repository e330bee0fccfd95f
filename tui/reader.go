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
	name    string
	heading string
	ref     snapshot.Ref
	// command has the arguments of the command that shows the same: of kubectl if
	// yaml is set, and else of meshctl.
	command string
	yaml    bool
	// question is asked of each update; nil for a page about an object.
	question func(Source, *explain.Index) (explain.Page, error)
	// content lays the page out; nil while it is loaded.
	content func(width int) []line
	// deleted: the object no longer exists.
	deleted bool

	lines  []line
	width  int
	window window
	from   int
	// index is the one that the content is from, or is being loaded from.
	index *explain.Index
}

// contentMsg is content that was loaded by a command.
type contentMsg struct {
	page    *readerPage
	index   *explain.Index
	heading string
	content func(int) []line
	deleted bool
}

func newDetail(ref snapshot.Ref) *readerPage {
	return &readerPage{
		name: ref.Name, heading: ref.Kind.String() + " " + ref.Namespace + "/" + ref.Name, ref: ref,
		command: "describe " + kindWord(ref.Kind) + " " + ref.Name,
	}
}

func newYAML(ref snapshot.Ref) *readerPage {
	info := ref.Kind.Info()
	return &readerPage{
		name: "yaml", heading: "YAML of " + ref.Kind.String() + " " + ref.Namespace + "/" + ref.Name, ref: ref, yaml: true,
		command: "get " + info.Resource + "." + info.Group + " " + ref.Name + " -n " + ref.Namespace + " -o yaml",
	}
}

// load returns the command that loads the content of a page about an object; nil if
// there is nothing to load.
func (p *readerPage) load(source Source, x *explain.Index) tea.Cmd {
	if p.ref == (snapshot.Ref{}) && p.question == nil || x == nil || p.index == x {
		return nil
	}
	p.index = x
	if question := p.question; question != nil {
		return func() tea.Msg {
			page, err := question(source, x)
			if err != nil {
				page = explain.Page{Sections: []explain.Section{{Text: err.Error()}}}
			}
			return contentMsg{page: p, index: x, content: func(width int) []line { return pageLines(page, width) }}
		}
	}
	ref, yaml := p.ref, p.yaml
	return func() tea.Msg {
		if !x.Has(ref) {
			return contentMsg{page: p, index: x, deleted: true}
		}
		if yaml {
			return contentMsg{page: p, index: x, content: yamlContent(x, ref)}
		}
		description := x.Describe(ref).Page()
		return contentMsg{page: p, index: x, heading: description.Title, content: func(width int) []line { return pageLines(description, width) }}
	}
}

// setContent shows loaded content, unless newer content is being loaded.
func (p *readerPage) setContent(msg contentMsg) {
	if p.index != msg.index {
		return
	}
	p.deleted = msg.deleted
	if !msg.deleted {
		p.content, p.width = msg.content, 0
		p.heading = cmp.Or(msg.heading, p.heading)
	}
}

func (p *readerPage) crumb() string { return p.name }

func (p *readerPage) title(*shared) string {
	text := snapshot.Clean(p.heading)
	switch {
	case p.deleted:
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
	case p.command == "":
		return ""
	case p.yaml:
		return s.source.Kubectl(p.command)
	}
	return s.source.Command(p.command)
}

func (p *readerPage) render(s *shared, width, height int) []string {
	if p.content == nil {
		if p.deleted {
			return []string{"", "  It no longer exists. esc goes back."}
		}
		return []string{"", "  Loading …"}
	}
	var out []string
	end := min(p.window.offset+height, len(p.lines))
	for i := p.window.offset; i < end; i++ {
		out = append(out, p.lines[i].render(s.theme, i == p.window.cursor, p.from, width))
	}
	return out
}
