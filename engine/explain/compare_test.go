package explain_test

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/meshctl/meshctl/engine/explain"
	"github.com/meshctl/meshctl/engine/snapshot"
)

func TestCompare(t *testing.T) {
	t.Parallel()
	ref := func(cluster, name string) snapshot.Ref {
		return snapshot.Ref{Kind: snapshot.VirtualService, Cluster: cluster, Namespace: "bookinfo", Name: name}
	}
	object := func(cluster, name, host string) *snapshot.Object {
		return &snapshot.Object{Ref: ref(cluster, name), Content: &snapshot.Content{Spec: map[string]any{"host": host}}}
	}
	issue := func(s snapshot.Severity, message string) snapshot.Issue {
		return snapshot.Issue{Severity: s, Message: message}
	}
	before := &snapshot.Output{
		Parts:  snapshot.ListOf([]*snapshot.Part{{Objects: []*snapshot.Object{object("a", "gone", "x"), object("a", "same", "x"), object("b", "other", "x")}}}),
		Issues: []snapshot.Issue{issue(snapshot.Error, "fixed"), issue(snapshot.Warning, "stays")},
	}
	after := &snapshot.Output{
		Parts:  snapshot.ListOf([]*snapshot.Part{{Objects: []*snapshot.Object{object("a", "same", "x"), object("b", "new", "x"), object("b", "other", "y")}}}),
		Issues: []snapshot.Issue{issue(snapshot.Error, "appears"), issue(snapshot.Warning, "stays")},
	}
	c, err := explain.Compare(before, after)
	require.NoError(t, err)
	var got []string
	for _, cluster := range c.Clusters {
		for i := range cluster.Objects {
			got = append(got, cluster.Objects[i].Verb()+" "+cluster.Cluster+"/"+cluster.Objects[i].Ref.Name)
		}
	}
	assert.Equal(t, []string{"removed a/gone", "created b/new", "changed b/other"}, got)
	assert.Equal(t, []snapshot.Issue{issue(snapshot.Error, "appears")}, c.NewIssues)
	assert.Equal(t, []snapshot.Issue{issue(snapshot.Error, "fixed")}, c.FixedIssues)
	text := c.Text()
	assert.Contains(t, text, "# removed: VirtualService a/bookinfo/gone\n")
	assert.Contains(t, text, "host: x\n")
	assert.Contains(t, text, "\n-  host: x\n+  host: \"y\"\n")

	c, err = explain.Compare(before, before)
	require.NoError(t, err)
	assert.Empty(t, c.Clusters)
	assert.Empty(t, c.NewIssues)
}
