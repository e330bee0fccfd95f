package tui

import (
	"strings"

	"github.com/meshctl/meshctl/engine/explain"
	"github.com/meshctl/meshctl/engine/snapshot"
)

// yamlContent lays out objects, each with all that was generated from it.
func yamlContent(x *explain.Index, refs []snapshot.Ref) func(int) []line {
	var lines []line
	for i, ref := range refs {
		if i > 0 {
			lines = append(lines, line{})
		}
		if len(refs) > 1 {
			lines = append(lines, line{text: snapshot.Clean(ref.String()), style: styleTitle, ref: ref})
		}
		lines = append(lines, yamlLines(x, ref)...)
	}
	return func(width int) []line { return wrapTitles(lines, width) }
}

func yamlLines(x *explain.Index, ref snapshot.Ref) (lines []line) {
	title := func(text string) { lines = append(lines, line{text: snapshot.Clean(text), style: styleTitle}) }
	own, err := x.YAML(ref)
	switch {
	case err != nil:
		title("It cannot be shown as YAML: " + err.Error())
	case own == nil:
		title("There is no " + ref.Kind.String() + " object of this name.")
	}
	for part := range strings.Lines(string(own)) {
		lines = append(lines, line{text: "  " + snapshot.Clean(strings.TrimSuffix(part, "\n"))})
	}
	generated, err := x.Generated(ref)
	if err != nil {
		title("The objects generated from it cannot be shown as YAML: " + err.Error())
	}
	lines = append(lines, line{})
	if len(generated) == 0 {
		title("Nothing is generated from it in any cluster.")
	}
	for i := range generated {
		lines = append(lines, generatedLines(&generated[i])...)
	}
	return lines
}

// wrapTitles breaks titles that are too long; YAML is moved from side to side.
func wrapTitles(lines []line, width int) []line {
	out := make([]line, 0, len(lines))
	for _, l := range lines {
		if l.style != styleTitle {
			out = append(out, l)
			continue
		}
		for _, part := range wrap(l.text, width) {
			out = append(out, line{text: part, style: styleTitle, ref: l.ref})
			l.ref = snapshot.Ref{} // the first part opens it
		}
	}
	return out
}

// generatedLines are an object in all its variants. Lines that not all
// variants have begin with ~.
func generatedLines(g *explain.Generated) []line {
	var out []line
	name := g.Kind + " " + g.Namespace + "/" + g.Name
	for _, v := range g.Variants {
		text := name + " in " + strings.Join(v.Clusters, ", ")
		if len(g.Variants) > 1 {
			text += " (lines with ~ differ between clusters)"
		}
		out = append(out, line{text: snapshot.Clean(text), style: styleTitle})
		for _, l := range v.Lines {
			each := line{text: "  " + snapshot.Clean(l.Text)}
			if l.Differs {
				each.text, each.style = "~ "+snapshot.Clean(l.Text), styleDiffers
			}
			out = append(out, each)
		}
		out = append(out, line{})
	}
	return out
}
