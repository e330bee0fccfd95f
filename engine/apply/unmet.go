package apply

import (
	"fmt"
	"maps"
	"slices"

	"github.com/meshctl/meshctl/engine/snapshot"
)

// This file reports what does not hold yet in a cluster that cannot be written to: a
// policy must not be said to be in force where it is not.

// awaitCluster notes which policies ask for something that is not written, because the
// cluster cannot be written to.
func (c *cluster) awaitCluster() {
	var f snapshot.Failure
	if c.name != "" && c.gate.armed && c.gate.listed && !c.writable() && !c.connecting() {
		f = c.unwrittenFailure()
	}
	if f.Reason == c.unwritten.Reason && slices.Equal(f.Parents, c.unwritten.Parents) {
		return
	}
	c.unwritten = f
	c.notifyFailures()
}

// unwrittenFailure is the failure of all objects that differ from what is wanted, as far as is
// known; zero if no policy asks for one.
func (c *cluster) unwrittenFailure() snapshot.Failure {
	parents := map[snapshot.Ref]bool{}
	objects := 0
	for of, i := range c.items {
		if i.object == nil {
			continue
		}
		if l, exists := c.live(of); exists && l.Ours() && l.Here {
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
		return snapshot.Failure{}
	}
	return snapshot.Failure{
		Ref: snapshot.Ref{Kind: snapshot.KubernetesCluster, Namespace: c.Namespace, Name: c.name},
		Reason: snapshot.Reason{Code: snapshot.ClusterAwaited, What: fmt.Sprintf(
			"the cluster cannot be written to now, and %d objects there are not known to be as they should; what was written there before stays in effect until it answers", objects)},
		Parents: slices.SortedFunc(maps.Keys(parents), snapshot.Ref.Compare),
	}
}
