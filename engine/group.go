package engine

import "github.com/meshctl/meshctl/engine/snapshot"

// group is a list of things made one by one from sources of one sort, which are
// ascending by name. It makes anew what has another source than before.
type group[S, M comparable] struct {
	sources snapshot.List[S]
	made    snapshot.List[M]
}

// update brings the group up to the sources and reports whether anything is
// new or gone. Render is given what was made for the same name before, if any.
func (g *group[S, M]) update(sources snapshot.List[S], name func(S) string, render func(S, M) M) bool {
	if g.sources.Same(sources) {
		return false
	}
	var none S
	var byName map[string]int
	var before []M
	var beforeSources []S
	// earlier finds what was made under a name in another place.
	earlier := func(n string) (s S, m M) {
		if byName == nil {
			before, beforeSources = g.made.Slice(), g.sources.Slice()
			byName = make(map[string]int, len(before))
			for i, s := range beforeSources {
				byName[name(s)] = i
			}
		}
		if i, ok := byName[n]; ok {
			return beforeSources[i], before[i]
		}
		return s, m
	}
	changed := g.sources.Len() != sources.Len()
	made := snapshot.Project(g.sources, sources, g.made, func(s, old S, given M) M {
		if s == old {
			return given
		}
		changed = true
		if n := name(s); old == none || name(old) != n {
			if old, given = earlier(n); s == old {
				return given
			}
		}
		return render(s, given)
	})
	g.sources, g.made = sources, made
	return changed
}

// sameSlice reports whether two slices are one.
func sameSlice[T any](a, b []T) bool {
	return len(a) == len(b) && (len(a) == 0 || &a[0] == &b[0])
}
