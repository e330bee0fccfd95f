package tui

import (
	"slices"
	"strings"

	tea "github.com/charmbracelet/bubbletea"

	"github.com/meshctl/meshctl/engine/snapshot"
)

// maxPast bounds the history.
const maxPast = 50

// leave remembers where the user was.
func (m *Model) leave() {
	m.past = append(m.past, slices.Clone(m.stack))
	if len(m.past) > maxPast {
		m.past = m.past[1:]
	}
	m.future = nil
}

// push opens a page on top.
func (m *Model) push(p page) tea.Cmd {
	m.leave()
	m.stack = append(slices.Clone(m.stack), p)
	return m.arrive()
}

// visit goes to a page that lists things.
func (m *Model) visit(p *listPage) tea.Cmd {
	m.leave()
	m.stack = []page{p}
	return m.arrive()
}

// arrive logs the command for what is on the screen, and lets it load.
func (m *Model) arrive() tea.Cmd {
	if text := m.top().equivalent(&m.shared); text != "" && (len(m.log) == 0 || m.log[len(m.log)-1] != text) {
		m.log = append(m.log, text)
	}
	return m.load()
}

// back leaves what is on top; on a page that lists things it clears, one after
// the other, what keeps rows from sight.
func (m *Model) back() tea.Cmd {
	if len(m.stack) > 1 {
		m.leave()
		m.stack = slices.Clone(m.stack[:len(m.stack)-1])
		return m.load()
	}
	switch p := m.list(); {
	case p.filter.kind != filterNone:
		p.filter = filter{}
	case m.problems:
		m.problems = false
	case m.cluster != "":
		m.cluster = ""
	default:
		m.say("this is the outermost page; q quits")
	}
	return nil
}

// travel goes back and forth in the history.
func (m *Model) travel(v verb) tea.Cmd {
	from, to, end := &m.past, &m.future, "nothing was looked at before this"
	if v == verbNewer {
		from, to, end = &m.future, &m.past, "nothing was looked at after this"
	}
	if len(*from) == 0 {
		m.say(end)
		return nil
	}
	*to = append(*to, m.stack)
	m.stack = (*from)[len(*from)-1]
	*from = (*from)[:len(*from)-1]
	return m.load()
}

// typing folds a key while something is typed.
func (m *Model) typing(msg tea.KeyMsg) tea.Cmd {
	kind := m.prompt.kind
	done := m.prompt.press(msg, m.words())
	p := m.list()
	if kind == '/' {
		// Rows follow what is typed; what cannot be read yet keeps the last.
		f, err := parseFilter(m.prompt.input.Value())
		switch {
		case done == typedCancelled:
			p.filter = m.before
		case err == nil:
			p.filter = f
		case done == typedDone:
			m.say(snapshot.Clean(err.Error()))
		}
	}
	if done == typedMore {
		return nil
	}
	m.prompt.stop()
	if kind == ':' && done == typedDone {
		return m.run(strings.TrimSpace(m.prompt.input.Value()))
	}
	return nil
}

// words are what a command can be completed to: the pages, the clusters, and
// what the page on the screen lists.
func (m *Model) words() []string {
	var out []string
	for _, info := range pageInfos {
		out = append(out, info.names[0])
	}
	out = append(out, "help", "quit")
	if g := m.tables[pageFleet]; g != nil {
		for _, name := range g.clusters() {
			out = append(out, "@"+name)
		}
	}
	return out
}

// run carries out a command.
func (m *Model) run(text string) tea.Cmd {
	c := parseCommand(text)
	switch {
	case c.quit:
		return tea.Quit
	case c.help:
		return m.push(newHelp())
	case c.hasCluster && c.cluster != "" && !m.isCluster(c.cluster):
		m.say("no cluster is called " + snapshot.Clean(c.cluster) + "; the fleet lists them")
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
			m.say(snapshot.Clean(err.Error()))
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

// openNamed opens what is called so: if it could be several, the page that
// lists them, filtered.
func (m *Model) openNamed(c command) tea.Cmd {
	x := m.news.Index
	if x == nil {
		m.say("nothing has been read yet")
		return nil
	}
	kinds := []snapshot.Kind{
		snapshot.Destination, snapshot.Workload, snapshot.TrafficPolicy, snapshot.AccessPolicy, snapshot.VirtualMesh,
		snapshot.VirtualDestination, snapshot.ServiceDependency, snapshot.Mesh, snapshot.KubernetesCluster,
	}
	pages := map[snapshot.Kind]pageID{
		snapshot.Destination: pageDestinations, snapshot.Workload: pageWorkloads, snapshot.TrafficPolicy: pagePolicies,
		snapshot.AccessPolicy: pagePolicies, snapshot.VirtualMesh: pageVirtualMeshes, snapshot.Mesh: pageFleet,
		snapshot.KubernetesCluster: pageFleet, snapshot.VirtualDestination: pagePolicies, snapshot.ServiceDependency: pagePolicies,
	}
	for _, kind := range kinds {
		if c.hasPage && pages[kind] != c.page {
			continue
		}
		switch found := x.Find(kind, c.name); {
		case len(found) == 1:
			m.leave()
			m.stack = []page{m.pages[pages[kind]], newDetail(found[0])}
			return m.arrive()
		case len(found) > 1:
			p := m.pages[pages[kind]]
			first, _, _ := strings.Cut(c.name, ".")
			p.filter, _ = parseFilter(first)
			return m.visit(p)
		}
	}
	m.say("no page and no object is called " + snapshot.Clean(c.name) + "; tab completes, ? helps")
	return nil
}

// sayCommand shows the command that says the same as the screen: of the row
// under the cursor if there is one.
func (m *Model) sayCommand() {
	text := m.top().equivalent(&m.shared)
	if _, lists := m.top().(*listPage); lists {
		if ref := m.top().selected(&m.shared); ref != (snapshot.Ref{}) {
			text = newDetail(ref).equivalent(&m.shared)
		}
	}
	if text == "" {
		text = "no command says the same as this page"
	}
	m.say("$ " + text)
}
