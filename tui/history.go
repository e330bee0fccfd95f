package tui

import (
	"slices"
	"strings"

	tea "charm.land/bubbletea/v2"

	"github.com/meshctl/meshctl/engine/snapshot"
)

// maxPast bounds the history.
const maxPast = 50

// remember puts the pages on the screen into the history.
func (m *Model) remember() {
	m.past = append(m.past, slices.Clone(m.stack))
	if len(m.past) > maxPast {
		m.past = m.past[1:]
	}
	m.future = nil
}

// push opens a page on top.
func (m *Model) push(p page) tea.Cmd {
	m.remember()
	m.stack = append(slices.Clone(m.stack), p)
	return m.show()
}

// visit goes to a list page.
func (m *Model) visit(p *listPage) tea.Cmd {
	m.remember()
	m.stack = []page{p}
	return m.show()
}

// show logs the command for what is on the screen, and loads it.
func (m *Model) show() tea.Cmd {
	if text := m.top().commandLine(&m.shared); text != "" && (len(m.log) == 0 || m.log[len(m.log)-1] != text) {
		m.log = append(m.log, text)
	}
	return m.loadTop()
}

// back closes the page on top; on a list page it clears, one after the other,
// what hides rows, and then the marks: they cost the most to make again.
func (m *Model) back() tea.Cmd {
	if len(m.stack) > 1 {
		m.remember()
		m.stack = slices.Clone(m.stack[:len(m.stack)-1])
		return m.loadTop()
	}
	switch p := m.list(); {
	case p.filter.kind != filterNone:
		p.filter = filter{}
	case m.problems:
		m.problems = false
	case m.cluster != "":
		m.cluster = ""
	case p.marks.count() > 0:
		p.marks.clear()
	default:
		m.notify("this is the first page; q quits")
	}
	return nil
}

// goHistory goes back and forth in the history.
func (m *Model) goHistory(v verb) tea.Cmd {
	from, to, end := &m.past, &m.future, "there is no earlier page"
	if v == verbNewer {
		from, to, end = &m.future, &m.past, "there is no later page"
	}
	if len(*from) == 0 {
		m.notify(end)
		return nil
	}
	*to = append(*to, m.stack)
	m.stack = (*from)[len(*from)-1]
	*from = (*from)[:len(*from)-1]
	return m.loadTop()
}

// afterTyping does what follows from a change of the prompt.
func (m *Model) afterTyping(done typed) tea.Cmd {
	kind := m.prompt.kind
	if kind == '/' {
		// The page follows what is typed; a filter that is not valid yet keeps the last.
		typed := m.prompt.input.Value()
		if done == typedCancelled {
			typed = m.before
		}
		if err := m.top().narrow(typed); err != nil && done == typedDone {
			m.notify(snapshot.Clean(err.Error()))
		}
	}
	if done == typedMore {
		return nil
	}
	m.prompt.stop()
	if kind == ':' && done == typedDone {
		text := strings.TrimSpace(m.prompt.input.Value())
		m.commands = slices.DeleteFunc(m.commands, func(c string) bool { return c == text || c == "" })
		m.commands = append(m.commands, text)
		return m.run(text)
	}
	return nil
}

// words are what a command can be completed to: the pages, the clusters, and the objects that
// can be opened.
func (m *Model) words() []string {
	if m.prompt.kind != ':' {
		return nil
	}
	if strings.HasPrefix(m.prompt.input.Value(), whyWord+" ") {
		return m.askWords()
	}
	var out []string
	for _, info := range pageInfos {
		out = append(out, info.names[0])
	}
	out = append(out, "help", "quit", whyWord)
	if g := m.tables[pageFleet]; g != nil {
		for _, name := range g.clusters() {
			out = append(out, "@"+name)
		}
	}
	return append(out, m.names...)
}

// run runs a command that was typed.
func (m *Model) run(text string) tea.Cmd {
	if words := strings.Fields(text); len(words) > 0 && words[0] == whyWord {
		return m.ask(words[1:])
	}
	c := parseCommand(text)
	switch {
	case c.quit:
		return tea.Quit
	case c.help:
		return m.push(newHelp())
	case c.hasCluster && c.cluster != "" && !m.isCluster(c.cluster):
		m.notify("no cluster is called " + snapshot.Clean(c.cluster) + "; page 1 lists them")
		return nil
	case c.name != "":
		return m.openNamed(c)
	}
	if c.hasCluster {
		m.cluster = c.cluster
	}
	p := m.list()
	if c.hasPage {
		p = m.pages[c.page]
	}
	if c.filter != "" {
		f, err := parseFilter(c.filter)
		if err != nil {
			m.notify(snapshot.Clean(err.Error()))
			return nil
		}
		p.filter = f
	}
	if c.hasPage {
		return m.visit(p)
	}
	return nil
}

func (m *Model) isCluster(name string) bool {
	g := m.tables[pageFleet]
	return g != nil && slices.Contains(g.clusters(), name)
}

// openedByName are the kinds whose objects open by their names, the first one first.
func openedByName() []snapshot.Kind {
	return []snapshot.Kind{
		snapshot.Destination, snapshot.Workload, snapshot.TrafficPolicy, snapshot.AccessPolicy, snapshot.VirtualMesh,
		snapshot.VirtualDestination, snapshot.ServiceDependency, snapshot.Mesh, snapshot.KubernetesCluster,
	}
}

// openNamed opens the object of a name or, if there are several, the page that
// lists them, filtered.
func (m *Model) openNamed(c command) tea.Cmd {
	x := m.latest.Index
	if x == nil {
		m.notify("nothing has been read yet")
		return nil
	}
	pages := map[snapshot.Kind]pageID{
		snapshot.Destination: pageDestinations, snapshot.Workload: pageWorkloads, snapshot.TrafficPolicy: pagePolicies,
		snapshot.AccessPolicy: pagePolicies, snapshot.VirtualMesh: pageVirtualMeshes, snapshot.Mesh: pageFleet,
		snapshot.KubernetesCluster: pageFleet, snapshot.VirtualDestination: pagePolicies, snapshot.ServiceDependency: pagePolicies,
	}
	for _, kind := range openedByName() {
		if c.hasPage && pages[kind] != c.page {
			continue
		}
		switch found := x.Find(kind, c.name); {
		case len(found) == 1:
			m.remember()
			m.stack = []page{m.pages[pages[kind]], newDetail(found[0])}
			return m.show()
		case len(found) > 1:
			p := m.pages[pages[kind]]
			first, _, _ := strings.Cut(c.name, ".")
			p.filter, _ = parseFilter(first)
			return m.visit(p)
		}
	}
	m.notify("no page or object is called " + snapshot.Clean(c.name) + "; tab completes, ? helps")
	return nil
}

// copyCommand copies the command for what is on the screen: that of the row under the cursor if
// there is one, or those of all marked objects. Several, and one that is too long for a line, open as a page.
func (m *Model) copyCommand() tea.Cmd {
	text := m.top().commandLine(&m.shared)
	var several []string
	if _, lists := m.top().(*listPage); lists {
		for _, ref := range chosen(m) {
			if ref != (snapshot.Ref{}) {
				text = newDetail(ref).commandLine(&m.shared)
				several = append(several, text)
			}
		}
	}
	switch {
	case len(several) > 1:
		m.notify(copied + snapshot.Count(len(several), "command"))
		text = strings.Join(several, "\n")
		slices.Reverse(several) // the page lists the last one first
		return tea.Batch(tea.SetClipboard(text), m.push(newLog(several, nil)))
	case text == "":
		m.notify("there is no command for this page")
		return nil
	case textWidth(copied+text) < m.width:
		m.notify(copied + text)
		return tea.SetClipboard(text)
	}
	return tea.Batch(tea.SetClipboard(text), m.push(newLog([]string{text}, nil)))
}

// copied stands before a command in the clipboard. Terminals that may not write it (OSC 52) show
// the text.
const copied = "copied: "
