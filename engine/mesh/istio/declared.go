package istio

import (
	"slices"

	"github.com/meshctl/meshctl/engine/snapshot"
)

// nameDeclarations adds to the parents of what is written for callers in other clusters the objects because of which their mesh
// imports the service: an edit of one of these explains that it goes, and failures to write it are told there. Annotations stay
// as they are, so that one more declaration writes nothing.
func (r *builder) nameDeclarations() {
	f := r.plan.Federation
	if f == nil || f.ImportedBy == nil {
		return
	}
	type place struct{ cluster, namespace string }
	because := map[place][]snapshot.Ref{}
	for i, mesh := range f.To {
		at := place{mesh.Cluster, mesh.Namespace}
		for _, origin := range f.ImportedBy[i] {
			because[at] = append(because[at], origin.Ref)
		}
	}
	type addition struct {
		of *snapshot.Content
		to place
	}
	done := map[addition]*snapshot.Content{}
	for i, o := range r.objects {
		at := place{o.Ref.Cluster, o.Ref.Namespace}
		more := because[at]
		if len(more) == 0 {
			continue
		}
		named := done[addition{o.Content, at}]
		if named == nil {
			c := *o.Content
			c.Parents = slices.Concat(c.Parents, more)
			slices.SortFunc(c.Parents, snapshot.Ref.Compare)
			c.Parents = slices.Compact(c.Parents)
			named = &c
			done[addition{o.Content, at}] = named
		}
		r.objects[i] = &snapshot.Object{Ref: o.Ref, Content: named}
	}
}
