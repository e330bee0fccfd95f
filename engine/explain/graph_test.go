package explain_test

import (
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/meshctl/meshctl/engine"
	"github.com/meshctl/meshctl/engine/explain"
	"github.com/meshctl/meshctl/engine/snapshot"
)

// TestGraphText: names of clusters cannot end a label, a string or a line of a drawing.
func TestGraphText(t *testing.T) {
	t.Parallel()
	evil := "a\"]; click n0 \"javascript:x\" \n%%{init}%%<b>`#\\"
	g := &explain.Graph{More: 2, Services: 1, Edges: []explain.GraphEdge{
		{Kind: explain.EdgeCall, From: snapshot.Ref{Kind: snapshot.Workload, Name: evil}, To: snapshot.Ref{Kind: snapshot.Destination, Name: "reviews"}},
		{Kind: explain.EdgeRefused, From: snapshot.Ref{Kind: snapshot.Workload, Name: "b"}, To: snapshot.Ref{Kind: snapshot.Destination, Name: "reviews"}},
		{Kind: explain.EdgeRoute, From: snapshot.Ref{Kind: snapshot.Destination, Name: "reviews"}, To: snapshot.Ref{Kind: snapshot.Destination, Name: "reviews"}, Subset: "v1", Share: 75, Requests: "requests (GET)", Changed: true},
	}}
	mermaid := g.Mermaid()
	assert.Equal(t, 9, strings.Count(mermaid, "\n"), mermaid)
	for _, bad := range []string{`"]; click`, "<", "`", "\\"} {
		assert.NotContains(t, mermaid, bad)
	}
	assert.Contains(t, mermaid, `n2 -.->|"refused"| n1`)
	assert.Contains(t, mermaid, `n1 ==>|"75% of requests (GET)"| n3`)
	assert.Contains(t, mermaid, "2 more edges, 1 more service")
	dot := g.DOT()
	assert.Equal(t, 11, strings.Count(dot, "\n"), dot)
	assert.Contains(t, dot, `"a\"]; click n0 \"javascript:x\"`)
	assert.Equal(t, 4, strings.Count(g.Text(), "\n"), g.Text())
}

// TestPlanGraph: a plan draws the services that it is about, what changes first, and no more than a person takes in.
func TestPlanGraph(t *testing.T) {
	t.Parallel()
	eachCase(t, func(t *testing.T, name string) {
		t.Helper()
		translator := engine.New(engine.Options{})
		input := load(t, name)
		x := explain.New(translator.Translate(input))
		for _, ref := range writtenIn(input) {
			planned, _, err := x.Plan(translator.Translate, []explain.Edit{{Ref: ref}}, time.Time{})
			require.NoError(t, err)
			assert.NotEmpty(t, planned.Verdict)
			assert.Equal(t, planned.Empty(), planned.Verdict == "nothing would change", planned.Verdict)
			lost := false
			for _, row := range planned.Calls() {
				lost = lost || row.Lost
				assert.NotEmpty(t, row.From)
				assert.NotEmpty(t, row.To)
			}
			if lost {
				assert.Contains(t, planned.Verdict, "may no longer call")
			}
			if planned.Graph == nil {
				continue
			}
			for _, g := range []*explain.Graph{planned.Graph.Before, planned.Graph.After} {
				assert.LessOrEqual(t, len(g.Edges), explain.MostEdges)
				for i := 1; i < len(g.Edges); i++ {
					assert.False(t, g.Edges[i].Changed && !g.Edges[i-1].Changed, "what changes is first")
				}
			}
		}
	})
}
