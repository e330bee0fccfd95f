package engine

import (
	"maps"
	"slices"
	"strings"

	"github.com/meshctl/meshctl/engine/snapshot"
)

// foreignCache finds objects to have under whose names users wrote some: sinks leave these as they are. It looks again at the parts
// that changed.
type foreignCache struct {
	parts snapshot.List[*snapshot.Part]
	// clusters are those of the last input.
	clusters []*snapshot.Cluster
	// from is what users wrote in each cluster, by name, of the kinds that are written.
	from   map[string]snapshot.ObjectsOfMeshes
	byHand map[snapshot.Ref]bool
	// found are the objects of each part, by key.
	found map[string][]*snapshot.Object
	// failures are what follows, ascending by Ref.
	failures []snapshot.Failure
}

// writtenByHand are the kinds that both users and sinks write.
func writtenByHand() (out []snapshot.Kind) {
	for _, k := range snapshot.Kinds(snapshot.ManagedSide, snapshot.Write) {
		if k.Info().ByHand {
			out = append(out, k)
		}
	}
	return out
}

// update looks at an input and the parts that follow from it.
func (f *foreignCache) update(in *snapshot.Input, parts snapshot.List[*snapshot.Part]) []snapshot.Failure {
	kinds := writtenByHand()
	same := len(f.from) == len(in.Clusters)
	for i, c := range in.Clusters {
		if i < len(f.clusters) && f.clusters[i] == c {
			continue // as it was
		}
		was := f.from[c.Name]
		same = same && !slices.ContainsFunc(kinds, func(k snapshot.Kind) bool { return !snapshot.SameSlice(was[k], c.OfMeshes[k]) })
	}
	if !same {
		f.inspect(in, kinds)
		f.parts, f.found = snapshot.List[*snapshot.Part]{}, map[string][]*snapshot.Object{}
	}
	f.clusters = in.Clusters
	changed := !same
	if len(f.byHand) > 0 {
		snapshot.Diff(f.parts, parts, func(a, b *snapshot.Part) int { return strings.Compare(a.Key, b.Key) }, func(was, now *snapshot.Part) {
			if was != nil && f.found[was.Key] != nil {
				delete(f.found, was.Key)
				changed = true
			}
			if now == nil {
				return
			}
			for _, o := range now.Objects {
				if f.byHand[o.Ref] {
					f.found[now.Key] = append(f.found[now.Key], o)
					changed = true
				}
			}
		})
	}
	f.parts = parts
	if changed {
		f.failures = nil
		for _, key := range slices.Sorted(maps.Keys(f.found)) {
			for _, o := range f.found[key] {
				f.failures = append(f.failures, snapshot.Failure{
					Ref: o.Ref, Parents: o.Content.Parents, Reason: snapshot.Reason{Code: snapshot.ForeignObject, What: foreignText},
				})
			}
		}
		slices.SortFunc(f.failures, func(a, b snapshot.Failure) int { return a.Ref.Compare(b.Ref) })
	}
	return f.failures
}

// foreignText is the failure of an object that has no place.
const foreignText = "an object of this name exists that is not ours, so it is left as it is; rename or delete it, and ours is written"

// inspect lists what users wrote.
func (f *foreignCache) inspect(in *snapshot.Input, kinds []snapshot.Kind) {
	f.from, f.byHand = map[string]snapshot.ObjectsOfMeshes{}, map[snapshot.Ref]bool{}
	plane := in.Management.Plane()
	for _, c := range in.Clusters {
		f.from[c.Name] = c.OfMeshes
		for _, k := range kinds {
			for _, o := range c.OfMeshes[k] {
				if !plane.Generated(o.GetLabels(), c.Name) {
					f.byHand[snapshot.Ref{Kind: k, Cluster: c.Name, Namespace: o.GetNamespace(), Name: o.GetName()}] = true
				}
			}
		}
	}
}

// withFailures is an input with failures that it does not have of the same objects.
func withFailures(in *snapshot.Input, failures []snapshot.Failure) *snapshot.Input {
	more := slices.DeleteFunc(slices.Clone(failures), func(f snapshot.Failure) bool {
		return slices.ContainsFunc(in.Failures, func(have snapshot.Failure) bool { return have.Ref == f.Ref })
	})
	if len(more) == 0 {
		return in
	}
	out := *in
	out.Failures = slices.Concat(in.Failures, more)
	slices.SortStableFunc(out.Failures, func(a, b snapshot.Failure) int { return a.Ref.Compare(b.Ref) })
	return &out
}
