package explain

import (
	"cmp"
	"fmt"
	"html"
	"math"
	"slices"
	"strings"

	"github.com/meshctl/meshctl/engine/snapshot"
	"github.com/meshctl/meshctl/engine/traffic"
)

// Sizes of a drawing, in pixels: of a box, the space between two of them, the margin, and a character.
const (
	boxWidth, boxHeight = 250, 40
	gapAcross, gapDown  = 330, 14
	margin, header      = 20, 64
	charWidth           = 7
)

// clusterColors fill the boxes of clusters, in their order; those beyond begin again.
var clusterColors = []string{"#dbeafe", "#dcfce7", "#fef3c7", "#f3e8ff", "#ffe4e6", "#e0f2fe", "#ecfccb", "#fae8ff"}

// drawing is a Graph with the places of its boxes.
type drawing struct {
	*Graph
	boxes map[string]*box
	// columns have the boxes from left to right, each from top to bottom.
	columns  [][]*box
	clusters []string
}

// box is an end of edges.
type box struct {
	key, title, below, cluster string
	service                    bool
	column                     int
	x, y                       float64
	// out and in are how many edges it has.
	out, in int
}

// draw places the boxes: callers to the left of what they call. Of a circle, one edge leads back.
func (g *Graph) draw() *drawing {
	d := &drawing{Graph: g, boxes: map[string]*box{}}
	nodes := map[snapshot.Ref]*GraphNode{}
	for i := range g.Nodes {
		nodes[g.Nodes[i].Ref] = &g.Nodes[i]
	}
	names, services := g.nodes()
	for _, name := range names {
		d.boxes[name] = &box{key: name, title: name, service: services[name]}
	}
	for i := range g.Edges {
		e := &g.Edges[i]
		d.boxes[e.fromName()].out++
		d.boxes[e.toName()].in++
		d.boxes[e.fromName()].call(nodes[e.From], "")
		d.boxes[e.toName()].call(nodes[e.To], e.Subset)
	}
	// The longest way from a caller decides, and no way has more edges than there are kinds of ends: workload, service, target.
	for range 3 {
		for i := range g.Edges {
			if from, to := d.boxes[g.Edges[i].fromName()], d.boxes[g.Edges[i].toName()]; from != to {
				to.column = min(max(to.column, from.column+1), 3)
			}
		}
	}
	most := 0
	for _, name := range names {
		b := d.boxes[name]
		for len(d.columns) <= b.column {
			d.columns = append(d.columns, nil)
		}
		d.columns[b.column] = append(d.columns[b.column], b)
		most = max(most, len(d.columns[b.column]))
		if b.cluster != "" && !slices.Contains(d.clusters, b.cluster) {
			d.clusters = append(d.clusters, b.cluster)
		}
	}
	d.columns = slices.DeleteFunc(d.columns, func(c []*box) bool { return len(c) == 0 })
	slices.Sort(d.clusters)
	d.place(most)
	return d
}

// call names a box as people do.
func (b *box) call(n *GraphNode, subset string) {
	if n == nil {
		return
	}
	b.title, b.cluster = n.Name, n.Cluster
	if subset != "" {
		b.title += ", " + subset
	}
	b.below = strings.TrimPrefix(n.Namespace+" · "+n.Cluster, " · ")
}

// place orders the boxes of each column by the middle of those that they have edges with, and spreads them over the height.
func (d *drawing) place(most int) {
	set := func() {
		for i, column := range d.columns {
			step := float64(boxHeight + gapDown)
			top := header + (float64(most)-float64(len(column)))*step/2
			for j, b := range column {
				b.x, b.y = float64(margin+i*(boxWidth+gapAcross)), top+float64(j)*step
			}
		}
	}
	for _, column := range d.columns {
		slices.SortStableFunc(column, func(a, b *box) int { return cmp.Compare(a.cluster, b.cluster) })
	}
	set()
	for range 6 {
		sum, n := map[*box]float64{}, map[*box]float64{}
		for i := range d.Edges {
			from, to := d.boxes[d.Edges[i].fromName()], d.boxes[d.Edges[i].toName()]
			sum[from], n[from] = sum[from]+to.y, n[from]+1
			sum[to], n[to] = sum[to]+from.y, n[to]+1
		}
		for _, column := range d.columns {
			slices.SortStableFunc(column, func(a, b *box) int {
				return cmp.Compare(sum[a]/max(n[a], 1), sum[b]/max(n[b], 1))
			})
		}
		set()
	}
}

// SVG is the graph as a drawing that stands by itself (w3.org/TR/SVG2): callers are left of what they call, boxes have the color of their
// cluster, refused calls are dotted, and those that cross clusters have a diamond.
func (g *Graph) SVG() string {
	d := g.draw()
	rows := 0
	for _, column := range d.columns {
		rows = max(rows, len(column))
	}
	width := 2*margin + max(len(d.columns)*(boxWidth+gapAcross)-gapAcross, 2*boxWidth)
	height := header + max(rows, 1)*(boxHeight+gapDown) + 2*margin
	var b strings.Builder
	fmt.Fprintf(&b, `<svg xmlns="http://www.w3.org/2000/svg" width="%d" height="%d" viewBox="0 0 %d %d" font-family="ui-monospace, Menlo, Consolas, monospace" font-size="11">`+"\n", width, height, width, height)
	fmt.Fprintf(&b, `<rect width="%d" height="%d" fill="#ffffff"/>`+"\n", width, height)
	d.legend(&b)
	for i := range d.Edges {
		d.line(&b, &d.Edges[i])
	}
	for _, column := range d.columns {
		for _, box := range column {
			d.box(&b, box)
		}
	}
	for i := range d.Edges {
		d.words(&b, &d.Edges[i])
	}
	if left := g.left(); left != "" {
		fmt.Fprintf(&b, `<text x="%d" y="%d" fill="#555555">… %s</text>`+"\n", margin, height-margin/2, svgText(left))
	}
	b.WriteString("</svg>\n")
	return b.String()
}

// legend says which color is which cluster, and what the numbers are of.
func (d *drawing) legend(b *strings.Builder) {
	x := float64(margin)
	for i, cluster := range d.clusters {
		fmt.Fprintf(b, `<rect x="%.0f" y="12" width="12" height="12" fill="%s" stroke="#888888"/><text x="%.0f" y="22">%s</text>`+"\n", x, clusterColors[i%len(clusterColors)], x+17, svgText(cluster))
		x += 40 + float64(charWidth*len([]rune(cluster)))
	}
	fmt.Fprintf(b, `<text x="%d" y="44" fill="#555555">%s</text>`+"\n", margin, svgText(d.caption()))
}

// caption says what the edges are.
func (g *Graph) caption() string {
	text := "Who may call what; dotted: refused; ◆: to another cluster."
	switch {
	case g.Window != "":
		return text + " Numbers: " + g.Window + "; red: more than " + snapshot.Percent(mostFailures) + " fail."
	case g.Unseen != "":
		return text + " No numbers: " + snapshot.Clean(g.Unseen)
	}
	return text
}

func (d *drawing) box(b *strings.Builder, at *box) {
	fill := "#f3f4f6"
	if i := slices.Index(d.clusters, at.cluster); i >= 0 {
		fill = clusterColors[i%len(clusterColors)]
	}
	round := 2
	if at.service {
		round = boxHeight / 2
	}
	fmt.Fprintf(b, `<g><title>%s</title><rect x="%.0f" y="%.0f" width="%d" height="%d" rx="%d" fill="%s" stroke="#666666"/>`, svgText(at.key), at.x, at.y, boxWidth, boxHeight, round, fill)
	fmt.Fprintf(b, `<text x="%.0f" y="%.0f" text-anchor="middle" font-weight="bold">%s</text>`, at.x+boxWidth/2, at.y+17, svgText(clipped(at.title, boxWidth-16)))
	fmt.Fprintf(b, `<text x="%.0f" y="%.0f" text-anchor="middle" fill="#555555" font-size="10">%s</text></g>`+"\n", at.x+boxWidth/2, at.y+31, svgText(clipped(at.below, boxWidth-16)))
}

// ends are where an edge begins and ends: at the sides of its boxes, or below each other in one column.
func (d *drawing) ends(e *GraphEdge) (x1, y1, x2, y2, bend float64) {
	from, to := d.boxes[e.fromName()], d.boxes[e.toName()]
	y1, y2 = from.y+boxHeight/2, to.y+boxHeight/2
	if from.x < to.x {
		return from.x + boxWidth, y1, to.x, y2, gapAcross / 2
	}
	return from.x + boxWidth, y1, to.x + boxWidth, y2 + 6, gapAcross / 3
}

func (d *drawing) line(b *strings.Builder, e *GraphEdge) {
	x1, y1, x2, y2, bend := d.ends(e)
	color, width, more := "#374151", 1.2, ""
	if e.Kind == EdgeRefused {
		color, more = "#9ca3af", ` stroke-dasharray="3 4"`
	}
	if seen := e.Seen; seen != nil {
		switch {
		case seen.Failing:
			color = "#dc2626"
		case seen.State == traffic.HasNumbers && e.Kind == EdgeRefused:
			color = "#b45309"
		case seen.State == traffic.HasNumbers:
			color = "#15803d"
		default:
			color = "#c4c9d1"
		}
		if seen.State == traffic.HasNumbers {
			width = 1.5 + min(math.Log10(1+seen.PerSecond), 4)
		}
	}
	end := x2 + bend // it leads back
	if x1 < x2 {
		end = x2 - bend
	}
	fmt.Fprintf(b, `<path d="M%.0f %.0f C%.0f %.0f %.0f %.0f %.0f %.0f" fill="none" stroke="%s" stroke-width="%.1f"%s/>`, x1, y1, x1+bend, y1, end, y2, x2, y2, color, width, more)
	tip := -8.0
	if x1 >= x2 {
		tip = 8
	}
	fmt.Fprintf(b, `<path d="M%.0f %.0f l%.0f -4 v8 z" fill="%s"/>`, x2, y2, tip, color)
	if from, to := d.boxes[e.fromName()], d.boxes[e.toName()]; from.cluster != "" && to.cluster != "" && from.cluster != to.cluster {
		fmt.Fprintf(b, `<path d="M%.0f %.0f l6 -6 l6 6 l-6 6 z" fill="%s"/>`, (x1+x2)/2-6, (y1+y2)/2, color)
	}
	b.WriteByte('\n')
}

// words stand at the end of an edge at which there are fewer of them.
func (d *drawing) words(b *strings.Builder, e *GraphEdge) {
	label := e.label()
	if label == "" || label == "refused" || e.Seen != nil && e.Seen.State == traffic.NoTraffic && e.Kind != EdgeRoute {
		return
	}
	x1, y1, x2, y2, _ := d.ends(e)
	at, x, y := "start", x1+10, y1-5
	if d.boxes[e.fromName()].out > d.boxes[e.toName()].in && x1 < x2 {
		at, x, y = "end", x2-14, y2-5
	}
	above, below, _ := strings.Cut(label, "; ")
	for i, text := range []string{above, below} {
		if text != "" {
			fmt.Fprintf(b, `<text x="%.0f" y="%.0f" text-anchor="%s" stroke="#ffffff" stroke-width="3" paint-order="stroke">%s</text>`+"\n", x, y+float64(i)*18, at, svgText(clipped(text, gapAcross-20)))
		}
	}
}

// clipped is a text that fits into a width, in pixels.
func clipped(text string, width int) string {
	text = snapshot.Clean(text)
	most := width / charWidth
	if runes := []rune(text); len(runes) > most {
		return string(runes[:most-1]) + "…"
	}
	return text
}

// svgText keeps strings of clusters from being read as XML.
func svgText(text string) string { return html.EscapeString(snapshot.Clean(text)) }

// HTML is a page with the drawing and its edges as a table. It stands by itself: it loads nothing, and has no scripts.
func (g *Graph) HTML() string {
	var b strings.Builder
	b.WriteString(`<!DOCTYPE html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta http-equiv="Content-Security-Policy" content="default-src 'none'; style-src 'unsafe-inline'">
<title>Who calls what</title>
<style>
body { font-family: system-ui, sans-serif; margin: 1rem; }
.drawing { overflow: auto; border: 1px solid #cccccc; max-height: 75vh; }
.drawing svg { max-width: max(100%, 1000px); height: auto; }
table { border-collapse: collapse; margin-top: 1rem; font-size: 0.9rem; }
th, td { text-align: left; padding: 0.2rem 0.8rem; border-bottom: 1px solid #dddddd; }
tr.failing td { color: #b91c1c; font-weight: bold; }
</style>
</head>
<body>
<h1>Who calls what</h1>
<div class="drawing">
`)
	b.WriteString(g.SVG())
	b.WriteString("</div>\n<table>\n<tr><th>From</th><th></th><th>To</th><th></th></tr>\n")
	for i := range g.Edges {
		e := &g.Edges[i]
		class := ""
		if e.Seen != nil && e.Seen.Failing {
			class = ` class="failing"`
		}
		label := e.label()
		if e.Kind == EdgeRefused {
			label = strings.TrimPrefix(strings.TrimPrefix(label, "refused"), "; ")
		}
		fmt.Fprintf(&b, "<tr%s><td>%s</td><td>%s</td><td>%s</td><td>%s</td></tr>\n", class, svgText(e.fromName()), e.does(), svgText(e.toName()), svgText(label))
	}
	b.WriteString("</table>\n</body>\n</html>\n")
	return b.String()
}
