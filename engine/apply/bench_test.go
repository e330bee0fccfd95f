package apply

import (
	"context"
	"fmt"
	"sync"
	"testing"

	"github.com/meshctl/meshctl/engine/snapshot"
)

// BenchmarkApplyOneEdit is the cost of handing over an Output of 50,000 parts
// with 245,000 objects in 50 clusters in which one part is new, until the
// clusters have taken it in.
func BenchmarkApplyOneEdit(b *testing.B) {
	out := fleet(50, 1000, 49)
	parts := out.Parts.Slice()
	ctx, cancel := context.WithCancel(b.Context())
	s := New(Options{})
	var group sync.WaitGroup
	defer group.Wait()
	defer cancel()
	s.apply(ctx, &group, out, Edits{All: true})
	b.ReportAllocs()
	b.ResetTimer()
	for n := range b.N {
		edited := *out
		at := n % len(parts)
		old := parts[at]
		part := &snapshot.Part{Key: old.Key}
		for _, o := range old.Objects {
			part.Objects = append(part.Objects, &snapshot.Object{Ref: o.Ref, Content: &snapshot.Content{Spec: map[string]any{"n": n}}})
		}
		parts[at] = part
		edited.Parts = out.Parts.With(map[int]*snapshot.Part{at: part})
		s.apply(ctx, &group, &edited, Edits{All: true})
		out = &edited
	}
}

// fleet is an Output: a part for each service of each cluster; every tenth
// federated to `remotes` clusters, so that there are some five objects a part.
func fleet(clusters, services, remotes int) *snapshot.Output {
	out := &snapshot.Output{}
	var parts []*snapshot.Part
	name := func(i int) string { return fmt.Sprintf("cluster-%02d", i%clusters) }
	for c := range clusters {
		out.Clusters = append(out.Clusters, name(c))
		for s := range services {
			part := &snapshot.Part{Key: fmt.Sprintf("destination/svc-%04d-ns-%s", s, name(c))}
			if s%10 == 0 {
				content := &snapshot.Content{Spec: map[string]any{"hosts": []string{part.Key}}}
				for r := range remotes {
					part.Objects = append(part.Objects, &snapshot.Object{Content: content, Ref: snapshot.Ref{
						Kind: snapshot.ServiceEntry, Cluster: name(c + r + 1), Namespace: "istio-system", Name: fmt.Sprintf("svc-%04d.%s", s, name(c))}})
				}
				sortObjects(part.Objects)
			}
			parts = append(parts, part)
		}
	}
	sortParts(parts)
	out.Parts = snapshot.ListOf(parts)
	return out
}
