package cmdutil

import (
	"slices"
	"strings"

	"github.com/meshctl/meshctl/engine/explain"
	"github.com/meshctl/meshctl/engine/snapshot"
)

// PickPolicy finds the one policy of some kinds that a name means, in a namespace or, if that is empty, in all of them.
// The error is about a word such as "policy", and ends with the hint where no name is similar.
func PickPolicy(index *explain.Index, kinds []snapshot.Kind, about, name, namespace, hint string) (snapshot.Ref, error) {
	var found []snapshot.Ref
	var names []string
	elsewhere := func(ref snapshot.Ref) bool { return namespace != "" && ref.Namespace != namespace }
	for _, kind := range kinds {
		found = append(found, index.Find(kind, name)...)
		for _, ref := range index.Refs(kind) {
			if !elsewhere(ref) && !slices.Contains(names, ref.Name) {
				names = append(names, ref.Name)
			}
		}
	}
	other := slices.Clone(found)
	found = slices.DeleteFunc(found, elsewhere)
	where := ""
	if namespace != "" {
		where = " in namespace " + namespace
	}
	switch {
	case len(found) == 1:
		return found[0], nil
	case len(found) > 1:
		return snapshot.Ref{}, FlagErrorf("%s is ambiguous; choose one of: %s", name, listed(found))
	case len(other) > 0:
		return snapshot.Ref{}, NotFoundErrorf("%s %q not found%s; there is: %s", about, name, where, listed(other))
	}
	if similar := snapshot.Nearest(name, names); similar != "" {
		hint = "did you mean " + similar + "?"
	}
	return snapshot.Ref{}, NotFoundErrorf("%s %q not found%s; %s", about, name, where, hint)
}

// listed names objects of different kinds.
func listed(refs []snapshot.Ref) string {
	names := make([]string, len(refs))
	for i, ref := range refs {
		names[i] = ref.String()
	}
	return strings.Join(names, ", ")
}
