package explain_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/meshctl/meshctl/engine/explain"
	"github.com/meshctl/meshctl/engine/snapshot"
)

// generated are two clusters' objects of one name, with so many lines each, of
// which every hundredth differs.
func generated(size int) (*explain.Index, snapshot.Ref) {
	policy := snapshot.Ref{Kind: snapshot.TrafficPolicy, Namespace: "gloo-mesh", Name: "p"}
	object := func(cluster string) *snapshot.Object {
		lines := make([]any, size)
		for i := range lines {
			if lines[i] = fmt.Sprintf("host-%d", i); i%100 == 0 {
				lines[i] = fmt.Sprintf("%s-%d", cluster, i)
			}
		}
		return &snapshot.Object{
			Ref:     snapshot.Ref{Kind: snapshot.VirtualService, Cluster: cluster, Namespace: "bookinfo", Name: "reviews"},
			Content: &snapshot.Content{Spec: map[string]any{"lines": lines}, Parents: []snapshot.Ref{policy}},
		}
	}
	parts := []*snapshot.Part{{Objects: []*snapshot.Object{object("a"), object("b")}}}
	return explain.New(&snapshot.State{
		Input: &snapshot.Input{Management: &snapshot.Management{}}, Plan: &snapshot.Plan{},
		Output: &snapshot.Output{Parts: snapshot.ListOf(parts)},
	}), policy
}

// TestDifferences: of objects that differ between clusters just the lines that
// do are marked, however long the objects are.
func TestDifferences(t *testing.T) {
	t.Parallel()
	for _, size := range []int{100, 20_000} {
		index, policy := generated(size)
		got, err := index.Generated(policy)
		require.NoError(t, err)
		require.Len(t, got, 1)
		require.Len(t, got[0].Variants, 2)
		for _, v := range got[0].Variants {
			var marked []string
			for _, l := range v.Lines {
				if l.Differs {
					marked = append(marked, l.Text)
				}
			}
			assert.Len(t, marked, size/100, "%d lines in %s", size, v.Clusters)
			for _, text := range marked {
				assert.True(t, strings.HasPrefix(strings.TrimSpace(text), "- "+v.Clusters[0]+"-"), text)
			}
		}
	}
}

// BenchmarkGenerated compares two objects of 100,000 lines.
func BenchmarkGenerated(b *testing.B) {
	index, policy := generated(100_000)
	b.ReportAllocs()
	for b.Loop() {
		if _, err := index.Generated(policy); err != nil {
			b.Fatal(err)
		}
	}
}
