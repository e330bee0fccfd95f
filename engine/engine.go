// Package engine translates: from what was seen in all clusters and what users
// asked for, to what every cluster is to have. It is pure: the same input gives
// the same bytes, and nothing here reads, writes, waits or logs.
//
//   - engine.go: Translator, which calls discovery, the planner, the renderers and
//     the writer of statuses, and keeps what did not change
//   - meshes.go: the kinds of mesh there are
//   - parts.go: the objects that follow from a plan
package engine

import (
	"github.com/meshctl/meshctl/engine/discovery"
	"github.com/meshctl/meshctl/engine/policy"
	"github.com/meshctl/meshctl/engine/snapshot"
	"github.com/meshctl/meshctl/engine/status"
)

// Translate translates one input.
func Translate(in *snapshot.Input) *snapshot.State { return New(Options{}).Translate(in) }

// Options say what a Translator knows of.
type Options struct {
	// Meshes are the kinds of mesh; Meshes() if nil.
	Meshes []Mesh
}

// Translator translates one input after another, and computes again only what
// has other inputs than before. What it returns does not depend on the inputs
// before. It is not safe for concurrent use.
type Translator struct {
	state     *snapshot.State
	detectors []discovery.Detector
	clusters  map[string]*clusterCache
	planner   policy.Planner
	parts     partCache
	statuses  status.Writer
}

// clusterCache is what was last discovered in a cluster, and from what.
type clusterCache struct {
	from   *snapshot.Cluster
	stored *snapshot.Management
	found  *snapshot.Discovered
	// distinct is found with the names that it has beside the other clusters.
	distinct *snapshot.Discovered
}

// New returns a Translator.
func New(options Options) *Translator {
	meshes := options.Meshes
	if meshes == nil {
		meshes = Meshes()
	}
	return &Translator{
		detectors: detectors(meshes),
		clusters:  map[string]*clusterCache{},
		planner:   policy.Planner{Dialects: dialects(meshes)},
		parts:     partCache{kinds: meshes},
	}
}

// Translate translates an input.
func (t *Translator) Translate(in *snapshot.Input) *snapshot.State {
	discovered := t.discover(in)
	plan := t.planner.Plan(in, discovered)
	out := &snapshot.Output{Clusters: clusterNames(in), Frozen: frozen(in)}
	out.Parts = t.parts.render(in.Management.Namespace, plan)
	out.Statuses = t.statuses.Write(in, plan, t.planner.Dialects)
	out.Debounces = debounces(discovered)
	out.Issues = status.Issues(in, discovered, plan, t.planner.Dialects)
	t.state = &snapshot.State{Input: in, Discovered: discovered, Plan: plan, Output: out}
	return t.state
}

// discover discovers again in each cluster that changed. For one that was never
// read, it takes what is stored of it.
func (t *Translator) discover(in *snapshot.Input) []*snapshot.Discovered {
	out := make([]*snapshot.Discovered, 0, len(in.Clusters))
	next := make(map[string]*clusterCache, len(in.Clusters))
	options := discovery.Options{Namespace: in.Management.Namespace, Detectors: t.detectors}
	for _, c := range in.Clusters {
		was := t.clusters[c.Name]
		now := &clusterCache{from: c}
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
		now, was := next[d.Cluster], t.clusters[d.Cluster]
		now.distinct = d
		if was != nil {
			now.distinct = discovery.Reuse(was.distinct, d)
		}
		out[i] = now.distinct
	}
	t.clusters = next
	return out
}

// sameStored reports whether the stored discovered objects are the same lists.
func sameStored(a, b *snapshot.Management) bool {
	return a == b || (snapshot.SameSlice(a.Meshes, b.Meshes) && snapshot.SameSlice(a.Workloads, b.Workloads) && snapshot.SameSlice(a.Destinations, b.Destinations))
}

func clusterNames(in *snapshot.Input) []string {
	out := make([]string, 0, len(in.Clusters))
	for _, c := range in.Clusters {
		out = append(out, c.Name)
	}
	return out
}

// debounces are how long control planes collect changes, by cluster, where that is
// not as usual.
func debounces(discovered []*snapshot.Discovered) map[string]snapshot.Debounce {
	var out map[string]snapshot.Debounce
	for _, d := range discovered {
		if d.Debounce == nil {
			continue
		}
		if out == nil {
			out = map[string]snapshot.Debounce{}
		}
		out[d.Cluster] = *d.Debounce
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
