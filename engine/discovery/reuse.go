package discovery

import (
	"maps"
	"reflect"
	"slices"

	"github.com/meshctl/meshctl/engine/snapshot"
)

// Reuse returns newer with every object that is equal to the one of the same
// name in older replaced by the older pointer, and with every list in which
// nothing changed replaced by the older list; if nothing changed at all it
// returns older. A comparison of pointers then finds what really changed.
// Neither argument is modified; either may be nil.
func Reuse(older, newer *snapshot.Discovered) *snapshot.Discovered {
	if older == nil || newer == nil || older == newer {
		return newer
	}
	out := *newer
	same := older.Cluster == newer.Cluster
	out.Meshes, same = reuseList(older.Meshes, newer.Meshes, same)
	out.Workloads, same = reuseList(older.Workloads, newer.Workloads, same)
	out.Destinations, same = reuseList(older.Destinations, newer.Destinations, same)
	if slices.Equal(older.Issues, newer.Issues) {
		out.Issues = older.Issues
	} else {
		same = false
	}
	if slices.Equal(older.Aliases, newer.Aliases) {
		out.Aliases = older.Aliases
	} else {
		same = false
	}
	if maps.Equal(older.Clashes, newer.Clashes) {
		out.Clashes = older.Clashes
	} else {
		same = false
	}
	if same && older.UsedWorkloads == newer.UsedWorkloads && older.UsedDestinations == newer.UsedDestinations &&
		older.UsedNames == newer.UsedNames && older.Debounce.OrUsual() == newer.Debounce.OrUsual() {
		return older
	}
	return &out
}

// reuseList does the same for two lists that are ascending by name. It returns older
// and same if they are equal, or else false.
func reuseList[T named](older, newer []T, same bool) ([]T, bool) {
	out := make([]T, len(newer))
	kept, at := 0, 0
	for i, o := range newer {
		for at < len(older) && older[at].GetName() < o.GetName() {
			at++
		}
		if at < len(older) && reflect.DeepEqual(older[at], o) {
			o = older[at]
			kept++
		}
		out[i] = o
	}
	if kept == len(newer) && kept == len(older) {
		return older, same
	}
	return out, false
}
