// Package engine translates: from what was seen in all clusters and what users
// asked for, to what shall be in every cluster. It is pure: the same input gives
// the same bytes, and nothing here reads, writes, waits or logs.
package engine

import (
	"github.com/meshctl/meshctl/engine/discovery"
	"github.com/meshctl/meshctl/engine/policy"
	"github.com/meshctl/meshctl/engine/snapshot"
)

// Translate is the only door to the engine: one input, all that follows from it.
func Translate(in *snapshot.Input) *snapshot.State { return NewMemo().Translate(in) }

// Memo translates one input after another and works out again only what has
// other inputs than before. With and without it the answers are the same. It is
// not safe for concurrent use.
type Memo struct {
	state    *snapshot.State
	clusters map[string]*clusterMemo
	planner  policy.Planner
	parts    partMemo
	statuses statusMemo
}

// clusterMemo is what was last discovered in a cluster, and from what.
type clusterMemo struct {
	from   *snapshot.Cluster
	stored *snapshot.Management
	found  *snapshot.Discovered
	// distinct is found with the names that it has beside the other clusters.
	distinct *snapshot.Discovered
}

// NewMemo returns a Memo that remembers nothing yet.
func NewMemo() *Memo {
	return &Memo{
		clusters: map[string]*clusterMemo{},
		planner:  policy.Planner{Dialects: Dialects()},
		parts:    partMemo{renderers: renderers()},
	}
}

// Translate is engine.Translate, faster where little has changed since the call
// before.
func (m *Memo) Translate(in *snapshot.Input) *snapshot.State {
	discovered := m.discover(in)
	plan := m.planner.Plan(in, discovered)
	out := &snapshot.Output{Clusters: clusterNames(in), Frozen: frozen(in)}
	out.Parts = m.parts.render(in.Management.Namespace, plan)
	out.Statuses = m.statuses.write(in, plan)
	out.Issues = issues(in, discovered, plan)
	m.state = &snapshot.State{Input: in, Discovered: discovered, Plan: plan, Output: out}
	return m.state
}

// discover looks into each cluster that changed. For one that was never read,
// what is stored of it stands in.
func (m *Memo) discover(in *snapshot.Input) []*snapshot.Discovered {
	out := make([]*snapshot.Discovered, 0, len(in.Clusters))
	next := make(map[string]*clusterMemo, len(in.Clusters))
	options := discovery.Options{Namespace: in.Management.Namespace}
	for _, c := range in.Clusters {
		was := m.clusters[c.Name]
		now := &clusterMemo{from: c}
		switch {
		case was != nil && was.from == c && (c.Sync != snapshot.Unsynced || sameStored(was.stored, in.Management)):
			now = was
		case c.Sync == snapshot.Unsynced:
			now.stored = in.Management
			now.found = discovery.FromStored(c.Name, in.Management)
		default:
			now.found = discovery.Discover(c, options)
		}
		if was != nil && now != was {
			now.found = discovery.Reuse(was.found, now.found)
		}
		next[c.Name] = now
		out = append(out, now.found)
	}
	for i, d := range discovery.Distinct(out) {
		now, was := next[d.Cluster], m.clusters[d.Cluster]
		now.distinct = d
		if was != nil {
			now.distinct = discovery.Reuse(was.distinct, d)
		}
		out[i] = now.distinct
	}
	m.clusters = next
	return out
}

// sameStored reports whether the stored discovered objects are the same lists.
func sameStored(a, b *snapshot.Management) bool {
	return a == b || (sameSlice(a.Meshes, b.Meshes) && sameSlice(a.Workloads, b.Workloads) && sameSlice(a.Destinations, b.Destinations))
}

func clusterNames(in *snapshot.Input) []string {
	out := make([]string, 0, len(in.Clusters))
	for _, c := range in.Clusters {
		out = append(out, c.Name)
	}
	return out
}

func frozen(in *snapshot.Input) []string {
	var out []string
	for _, c := range in.Clusters {
		if c.Frozen() {
			out = append(out, c.Name)
		}
	}
	return out
}
