package explain

import (
	"fmt"
	"strings"

	"github.com/meshctl/meshctl/engine/snapshot"
)

// Text has a line for each edge.
func (g *Graph) Text() string {
	var b strings.Builder
	for i := range g.Edges {
		e := &g.Edges[i]
		line := e.fromName() + " " + e.does() + " " + e.toName()
		switch label := e.label(); {
		case e.Kind == EdgeRefused && e.Seen != nil:
			line += ": " + e.Seen.text()
		case e.Kind != EdgeRefused && label != "":
			line += ": " + label
		}
		b.WriteString(snapshot.Clean(line) + "\n")
	}
	if left := g.left(); left != "" {
		b.WriteString("… " + left + "\n")
	}
	return b.String()
}

// does is what the edge says, as a verb.
func (e *GraphEdge) does() string {
	return map[EdgeKind]string{EdgeRoute: "goes to", EdgeCall: "may call", EdgeRefused: "may not call", EdgeSeen: "calls"}[e.Kind]
}

// Mermaid is the graph as a flowchart of Mermaid (mermaid.js.org), which GitHub and GitLab draw in Markdown: routes have their
// shares, refused calls are dotted, and what changes is thick.
func (g *Graph) Mermaid() string {
	var b strings.Builder
	b.WriteString("flowchart LR\n")
	ids := map[string]string{}
	names, services := g.nodes()
	for i, name := range names {
		ids[name] = fmt.Sprintf("n%d", i)
		shape := `["%s"]`
		if services[name] {
			shape = `(["%s"])`
		}
		fmt.Fprintf(&b, "  %s"+shape+"\n", ids[name], mermaidText(name))
	}
	for i := range g.Edges {
		e := &g.Edges[i]
		arrow := "-->"
		switch {
		case e.Kind == EdgeRefused:
			arrow = "-.->"
		case e.Changed:
			arrow = "==>"
		}
		if label := e.label(); label != "" {
			arrow += `|"` + mermaidText(label) + `"|`
		}
		fmt.Fprintf(&b, "  %s %s %s\n", ids[e.fromName()], arrow, ids[e.toName()])
	}
	g.mermaidFailing(&b)
	if left := g.left(); left != "" {
		fmt.Fprintf(&b, "  left[\"… %s\"]\n", left)
	}
	return b.String()
}

// mermaidFailing paints the edges on which more fails than may.
func (g *Graph) mermaidFailing(b *strings.Builder) {
	for i := range g.Edges {
		if seen := g.Edges[i].Seen; seen != nil && seen.Failing {
			fmt.Fprintf(b, "  linkStyle %d stroke:#c00,stroke-width:3px\n", i)
		}
	}
}

// mermaidText keeps strings of clusters from being read as Mermaid or HTML: all but letters, digits and plain punctuation is
// written by its number (mermaid.js.org: entity codes to escape characters).
func mermaidText(text string) string {
	var b strings.Builder
	for _, c := range snapshot.Clean(text) {
		switch {
		case c >= 'a' && c <= 'z', c >= 'A' && c <= 'Z', c >= '0' && c <= '9', strings.ContainsRune(" .,-_/:%()*=", c), c == '…':
			b.WriteRune(c)
		default:
			fmt.Fprintf(&b, "#%d;", c)
		}
	}
	return b.String()
}

// DOT is the graph in the language of Graphviz (graphviz.org/doc/info/lang.html).
func (g *Graph) DOT() string {
	var b strings.Builder
	b.WriteString("digraph calls {\n  rankdir=LR;\n")
	names, services := g.nodes()
	for _, name := range names {
		shape := "box"
		if services[name] {
			shape = "ellipse"
		}
		fmt.Fprintf(&b, "  %s [shape=%s];\n", dotText(name), shape)
	}
	for i := range g.Edges {
		e := &g.Edges[i]
		style := ""
		switch {
		case e.Kind == EdgeRefused:
			style = ", style=dotted"
		case e.Changed:
			style = ", style=bold"
		}
		if e.Seen != nil && e.Seen.Failing {
			style += ", color=red"
		}
		fmt.Fprintf(&b, "  %s -> %s [label=%s%s];\n", dotText(e.fromName()), dotText(e.toName()), dotText(e.label()), style)
	}
	if left := g.left(); left != "" {
		fmt.Fprintf(&b, "  left [shape=plaintext, label=%s];\n", dotText("… "+left))
	}
	b.WriteString("}\n")
	return b.String()
}

// dotText is a quoted string of DOT.
func dotText(text string) string {
	return `"` + strings.NewReplacer(`\`, `\\`, `"`, `\"`).Replace(snapshot.Clean(text)) + `"`
}
