package cmdutil

import (
	"maps"
	"slices"
	"strings"

	"github.com/meshctl/meshctl/engine/explain"
	"github.com/meshctl/meshctl/engine/snapshot"
)

// Pick finds the one object that a name means.
func Pick(index *explain.Index, kind snapshot.Kind, name string) (snapshot.Ref, error) {
	return one(index, []snapshot.Kind{kind}, name, index.Find(kind, name))
}

// Caller finds the workload that a name means: its own, or that of a service that it is the only one of.
func Caller(index *explain.Index, name string) (snapshot.Ref, error) {
	return one(index, []snapshot.Kind{snapshot.Workload}, name, explain.FindCaller(index, name))
}

// Called finds what the callers of a workload mean by a name.
func Called(index *explain.Index, from snapshot.Ref, name string) (snapshot.Ref, error) {
	found := index.FindCalled(from, name)
	if alias := explain.FindAlias(index, from, name); alias != nil && len(found) == 0 {
		return snapshot.Ref{}, NotFoundErrorf("%s; ask for the service that is meant", alias.Text())
	}
	ref, err := one(index, []snapshot.Kind{snapshot.Destination, snapshot.VirtualDestination}, name, found)
	if err != nil && len(found) == 0 && explain.AreAliasesUnread(index) {
		return snapshot.Ref{}, NotFoundErrorf("%w; a Service of type ExternalName is found in its cluster only, which was not read", err)
	}
	return ref, err
}

// one is the only object that was found; the error is about a name of some kinds.
func one(index *explain.Index, kinds []snapshot.Kind, name string, found []snapshot.Ref) (snapshot.Ref, error) {
	if len(found) == 1 {
		return found[0], nil
	}
	kind := strings.ToLower(kinds[0].String())
	names := make([]string, 0, len(found))
	inClusters := slices.ContainsFunc(found, func(ref snapshot.Ref) bool { return ref.Cluster != "" })
	for _, ref := range found {
		if inClusters {
			names = append(names, Clean(ref.Identity()))
		} else {
			names = append(names, ref.Name)
		}
	}
	if len(found) > 1 {
		return snapshot.Ref{}, FlagErrorf("%s is ambiguous; choose one of: %s", name, strings.Join(names, ", "))
	}
	for _, kind := range kinds {
		for _, ref := range index.Refs(kind) {
			names = append(names, ref.Name)
		}
	}
	hint := "none exists"
	if similar := closest(index, kinds, name, names); len(similar) > 0 {
		hint = "did you mean " + strings.Join(similar, " or ") + "?"
	} else if len(names) > 0 {
		hint = "list all with: meshctl describe " + kind
	}
	return snapshot.Ref{}, NotFoundErrorf("%s %q not found; %s", kind, name, hint)
}

// minPart is how many letters of a name say which one is meant.
const minPart = 3

// closest lists up to three names that contain the given one or begin it; or else those that
// differ from it by a letter or two, in full or as their owners call them.
func closest(index *explain.Index, kinds []snapshot.Kind, name string, names []string) []string {
	var similar []string
	for _, n := range names {
		if len(similar) < 3 && (len(name) >= minPart && strings.Contains(n, name) || len(n) >= minPart && strings.HasPrefix(name, n)) {
			similar = append(similar, n)
		}
	}
	if len(similar) > 0 {
		return similar
	}
	called := map[string]string{}
	for _, n := range names {
		called[n] = n
	}
	for _, kind := range kinds {
		for _, ref := range index.Refs(kind) {
			for _, short := range index.Called(ref) {
				if _, taken := called[short]; !taken {
					called[short] = ref.Name
				}
			}
		}
	}
	if word := snapshot.Nearest(name, slices.Sorted(maps.Keys(called))); word != "" {
		return []string{called[word]}
	}
	return nil
}
