package engine

import "slices"

// group is a list of things made one by one from sources of one sort, which are
// ascending by name. It makes anew what has another source than before.
type group[S comparable, M any] struct {
	sources []S
	names   []string
	made    []M
}

// update brings the group up to the sources and reports whether anything is
// new or gone. Render is given what was made for the same name before, if any.
func (g *group[S, M]) update(sources []S, name func(S) string, render func(S, M) M) bool {
	if sameSlice(g.sources, sources) {
		return false
	}
	if g.aligned(sources, name) {
		return g.updateInPlace(sources, render)
	}
	names, made := make([]string, len(sources)), make([]M, len(sources))
	at := 0
	for i, source := range sources {
		names[i] = name(source)
		for at < len(g.names) && g.names[at] < names[i] {
			at++
		}
		var old M
		if at < len(g.names) && g.names[at] == names[i] {
			old = g.made[at]
			if g.sources[at] == source {
				made[i] = old
				continue
			}
		}
		made[i] = render(source, old)
	}
	g.sources, g.names, g.made = sources, names, made
	return true
}

// aligned reports whether the sources have the names that they had.
func (g *group[S, M]) aligned(sources []S, name func(S) string) bool {
	if len(sources) != len(g.sources) {
		return false
	}
	for i, source := range sources {
		if source != g.sources[i] && name(source) != g.names[i] {
			return false
		}
	}
	return true
}

func (g *group[S, M]) updateInPlace(sources []S, render func(S, M) M) bool {
	changed := false
	for i, source := range sources {
		if source == g.sources[i] {
			continue
		}
		if !changed {
			g.made, changed = slices.Clone(g.made), true
		}
		g.made[i] = render(source, g.made[i])
	}
	g.sources = sources
	return changed
}

// sameSlice reports whether two slices are one.
func sameSlice[T any](a, b []T) bool {
	return len(a) == len(b) && (len(a) == 0 || &a[0] == &b[0])
}
