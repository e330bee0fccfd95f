package tui

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"strings"

	tea "charm.land/bubbletea/v2"

	"github.com/meshctl/meshctl/engine/explain"
	"github.com/meshctl/meshctl/engine/snapshot"
)

// readerPage is a page of text: an object, its YAML, the help, the commands so far.
type readerPage struct {
	name    string
	heading string
	ref     snapshot.Ref
	// command has the arguments of the command of meshctl that shows the same.
	command string
	// yaml are the objects of which the page shows the YAML; nil for other pages.
	yaml []snapshot.Ref
	// question is asked of each update; nil for a page about an object.
	question func(Source, *explain.Index) (explain.Page, error)
	// content lays the page out; nil while it is loaded.
	content func(width int) []line
	// deleted: the object no longer exists.
	deleted bool

	lines  []line
	width  int
	window window
	search search
	from   int
	// index is the one that the content is from, or is being loaded from.
	index *explain.Index
	facts explain.ClusterFacts
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

// newYAML is the page of the YAML of one object or several. That of several is about none of them.
func newYAML(refs ...snapshot.Ref) *readerPage {
	if len(refs) > 1 {
		return &readerPage{name: "yaml", heading: "YAML of " + snapshot.Count(len(refs), "object"), yaml: refs}
	}
	ref := refs[0]
	return &readerPage{name: "yaml", heading: "YAML of " + ref.Kind.String() + " " + ref.Namespace + "/" + ref.Name, ref: ref, yaml: refs}
}

// load returns the command that loads the content of a page about an object; nil if
// there is nothing to load. Facts, by cluster, are shown with a cluster.
func (p *readerPage) load(source Source, x *explain.Index, facts map[string]explain.ClusterFacts) tea.Cmd {
	known := explain.ClusterFacts{}
	if p.ref.Kind == snapshot.KubernetesCluster {
		known = facts[p.ref.Name]
	}
	if p.ref == (snapshot.Ref{}) && p.question == nil && p.yaml == nil || x == nil || p.index == x && p.facts == known {
		return nil
	}
	p.index, p.facts = x, known
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
		switch {
		case yaml == nil && !x.Has(ref), yaml != nil && !slices.ContainsFunc(yaml, x.Has):
			return contentMsg{page: p, index: x, deleted: true}
		case yaml != nil:
			return contentMsg{page: p, index: x, content: yamlContent(x, yaml)}
		}
		described := x.Describe(ref)
		if cluster, is := described.(*explain.Cluster); is {
			cluster.Facts = &known
		}
		description := described.Page()
		description.NotRead = x.NotRead()
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
	return text + snapshot.Clean(p.search.title(p.window.cursor))
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
		p.find()
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
		return openYAML{[]snapshot.Ref{p.ref}}
	case verbLeft:
		p.from = max(p.from-sideStep, 0)
	case verbRight:
		p.from += sideStep
	case verbNextMatch:
		p.window.to(p.search.next(p.window.cursor))
	case verbPreviousMatch:
		p.window.to(p.search.previous(p.window.cursor))
	case verbNextPage:
		p.window.to(p.link(1))
	case verbPreviousPage:
		p.window.to(p.link(-1))
	}
	return nil
}

// sideStep is how far ← and → move a page, in columns.
const sideStep = 8

// link is the next line, or the one before, with something to open; the cursor's own if no
// other line has.
func (p *readerPage) link(step int) int {
	for i := range len(p.lines) {
		at := (p.window.cursor + (i+1)*step + len(p.lines)*2) % len(p.lines)
		if p.lines[at].ref != (snapshot.Ref{}) {
			return at
		}
	}
	return p.window.cursor
}

// widest is the width of the longest line.
func (p *readerPage) widest() int {
	n := 0
	for i := range p.lines {
		n = max(n, textWidth(p.lines[i].text))
	}
	return n
}

// keys implements page.
func (p *readerPage) keys(*shared) []hint {
	out := []hint{{verbOpen, "open"}, {verbNextPage, "next link"}, {verbFilter, "search"}, {verbNextMatch, "next match"}, {verbYAML, "YAML"}, {verbWhy, "ask why"}}
	return append(out, hint{verbBack, "back"})
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
		case p.yaml != nil && v == verbYAML:
			return "this is the YAML"
		case len(p.yaml) > 1:
			return "this page is about several objects; back on the list, ctrl-d deletes all that are marked"
		case p.ref == (snapshot.Ref{}):
			return "this page is not about an object"
		}
	case verbWhy:
		if p.ref == (snapshot.Ref{}) {
			return "this page is not about a workload or a service"
		}
	case verbMarkTo, verbSort, verbReverse, verbProblems, verbWide:
		return "this works on list pages only"
	case verbNextMatch, verbPreviousMatch:
		if len(p.search.found) == 0 {
			return "nothing was found; / searches"
		}
	case verbNextPage, verbPreviousPage:
		if !slices.ContainsFunc(p.lines, func(l line) bool { return l.ref != snapshot.Ref{} }) {
			return "there is no link on this page; 1 to " + strconv.Itoa(int(pageCount)) + " go to another"
		}
	case verbRight:
		if p.widest()-p.from <= p.width-2 {
			return "the ends of all lines are on the screen"
		}
	case verbLeft:
		if p.from == 0 {
			return "the beginnings of the lines are on the screen"
		}
	}
	return ""
}

func (p *readerPage) commandLine(s *shared) string {
	switch {
	case p.window.cursor < len(p.lines) && p.lines[p.window.cursor].command != "":
		return p.lines[p.window.cursor].command
	case p.yaml != nil:
		return strings.Join(kubectl(s.source, "get", p.yaml, " -o yaml"), " && ")
	case p.command == "":
		return ""
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
		out = append(out, p.lines[i].render(s.theme, i == p.window.cursor, p.from, width, p.search.pattern))
	}
	return out
}
