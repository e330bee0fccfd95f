package apply

import (
	"fmt"
	"maps"
	"slices"

	"github.com/meshctl/meshctl/engine/mirror"
	"github.com/meshctl/meshctl/engine/snapshot"
)

// This file reports what does not hold yet in a cluster that cannot be written to: a
// policy must not be said to be in force where it is not.

// awaitCluster notes which policies ask for something that is not written, because the
// cluster cannot be written to.
func (c *cluster) awaitCluster() {
	var reason snapshot.Reason
	var parents []snapshot.Ref
	if c.name != "" && c.remote.gate.listed && c.accessible().silent {
		reason, parents = unwritten(c.items, &c.remote)
	}
	c.reports.set(ofUnwritten, reason, parents...)
}

// unwritten is the failure of all objects that differ from what is wanted, as far as is
// known, and the policies that ask for them; no reason if no policy asks for one.
func unwritten(items map[mirror.ID]*item, r *remote) (snapshot.Reason, []snapshot.Ref) {
	parents := map[snapshot.Ref]bool{}
	objects := 0
	for of, i := range items {
		if i.object == nil {
			continue
		}
		if l, exists := r.find(of); exists && l.Ours() && l.Here {
			if wanted, err := i.content.get(); err == nil && l.Spec == wanted {
				continue
			}
		}
		objects++
		for _, p := range i.object.Content.Parents {
			parents[p] = true
		}
	}
	if len(parents) == 0 {
		return snapshot.Reason{}, nil
	}
	return snapshot.Reason{Code: snapshot.ClusterAwaited, What: fmt.Sprintf(
			"the cluster cannot be written to now, and %d objects there are not known to be as they should; what was written there before stays in effect until it answers", objects)},
		slices.SortedFunc(maps.Keys(parents), snapshot.Ref.Compare)
}
