// Package engine translates: from what was seen in all clusters and what users
// asked for, to what every cluster is to have. It is pure: the same input gives
// the same bytes, and nothing here reads, writes, waits or logs.
//
// Three rules hold for everything below:
//
//   - An answer is what the caller's proxy will do. What decides about it is followed, or is named
//     in the answer as not followed, which then is no bare ALLOWED, ACCEPTED or ok. Each kind of
//     mesh declares what decides beside policies, and what answers do with it (Dialect.Outside;
//     meshctl help meshes).
//
//   - A tenant's reach ends at its namespace. Who may edit one namespace of one cluster
//     must not change anything outside of it through meshctl. For each object that is
//     read, ask who may write it: what decides about others (which control planes,
//     gateways and names there are) needs evidence that an editor of a namespace cannot
//     write. The file authority.md has who that is for each value, and what it decides.
//
//   - Doubt keeps what protects. What is briefly missing, cannot be read or cannot be
//     decided withdraws nothing; it is reported.
//
//   - engine.go: Translator, which calls discovery, the planner, the renderers and
//     the writer of statuses, and keeps what did not change
//
//   - meshes.go: the kinds of mesh there are
//
//   - parts.go: the objects that follow from a plan
//
//   - foreign.go: those whose place is taken by what users wrote
//
//   - audit.go: what would be if all that is audited was enforced
//
//   - trials.go: what of it proxies try, to count it
package engine

import (
	"slices"

	"github.com/meshctl/meshctl/engine/accesslog"
	settingsv1 "github.com/meshctl/meshctl/engine/api/settings/v1"
	"github.com/meshctl/meshctl/engine/discovery"
	"github.com/meshctl/meshctl/engine/policy"
	"github.com/meshctl/meshctl/engine/snapshot"
	"github.com/meshctl/meshctl/engine/status"
	"github.com/meshctl/meshctl/engine/virtualmesh"
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
	detectors discovery.Detectors
	// from is what was last discovered in as a whole, and found what there was in each cluster.
	from     *snapshot.Input
	found    []*snapshot.Discovered
	clusters map[string]*clusterCache
	names    *discovery.StoredNames
	planner  policy.Planner
	audit    auditor
	parts    partCache
	foreign  foreignCache
	logs     accesslog.Planner
	statuses status.Writer
}

// clusterCache is what was last discovered in a cluster, and from what.
type clusterCache struct {
	from   *snapshot.Cluster
	stored *snapshot.Management
	found  *snapshot.Discovered
	// installed are the namespaces of control planes that the Settings name, and limits
	// those that they set.
	installed []string
	limits    settingsv1.DiscoveryLimits
	gone      []string
	// names are those of the stored objects.
	names *discovery.StoredNames
	// distinct is found with the names that it has beside the other clusters.
	distinct *snapshot.Discovered
}

// sameSettings reports whether the same Settings hold.
func (c *clusterCache) sameSettings(now *clusterCache) bool {
	return slices.Equal(c.installed, now.installed) && c.limits == now.limits
}

// outdated reports whether what was found depends on stored objects that have changed.
func (c *clusterCache) outdated(m *snapshot.Management, names *discovery.StoredNames) bool {
	all := c.from.Sync == snapshot.Unsynced
	return !discovery.SameMeshes(c.from.Name, c.stored, m) ||
		(all || c.found.UsedWorkloads) && !snapshot.SameSlice(c.stored.Workloads, m.Workloads) ||
		all && !snapshot.SameSlice(c.stored.Destinations, m.Destinations) ||
		(c.found.UsedDestinations || c.found.UsedNames) && c.names != names
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
		names:     &discovery.StoredNames{},
		planner:   policy.Planner{Dialects: dialects(meshes)},
		audit:     auditor{planner: policy.Planner{Dialects: dialects(meshes)}},
		parts:     partCache{kinds: meshes},
	}
}

// Translate translates an input.
func (t *Translator) Translate(in *snapshot.Input) *snapshot.State {
	staying := in.Staying()
	discovered := t.discover(staying)
	inForce, audited := t.audit.split(staying)
	plan := t.planner.Plan(inForce, discovered)
	var would *snapshot.State
	if audited != nil {
		would = &snapshot.State{Input: audited, Discovered: discovered, Output: &snapshot.Output{Clusters: clusterNames(in), Frozen: frozen(in)}}
		would.Plan, plan = t.audit.plan(audited, discovered, plan)
	}
	out := &snapshot.Output{Clusters: clusterNames(in), Frozen: frozen(in)}
	out.Parts = t.parts.render(in.Management.Namespace, plan)
	foreign := t.foreign.update(staying, out.Parts)
	for i := range foreign {
		out.Foreign = append(out.Foreign, foreign[i].Ref)
	}
	failed := withFailures(in, foreign)
	logs := t.logs.Plans(staying, plan)
	out.Statuses = t.statuses.Write(failed, plan, logs, t.planner.Dialects)
	out.Debounces = debounces(discovered)
	out.Withdrawals = virtualmesh.Withdrawals(virtualmesh.SettingsInForce(in.Management))
	out.Issues = status.Issues(failed, discovered, plan, logs, t.planner.Dialects)
	t.state = &snapshot.State{Input: in, Discovered: discovered, Plan: plan, AccessLogs: logs, Output: out, Audited: would}
	return t.state
}

// discover discovers again in each cluster that changed. For one that was never
// read, it takes what is stored of it. Names depend on all clusters, and on what is
// stored.
func (t *Translator) discover(in *snapshot.Input) []*snapshot.Discovered {
	if t.from != nil && sameToDiscover(t.from, in) {
		t.names = t.names.Update(in.Management)
		from := *in
		t.from = &from
		return t.found
	}
	out := make([]*snapshot.Discovered, 0, len(in.Clusters))
	next := make(map[string]*clusterCache, len(in.Clusters))
	settings := virtualmesh.SettingsInForce(in.Management)
	options := discovery.Options{Namespace: in.Management.Namespace, Detectors: t.detectors, Stored: in.Management}
	options.Gone = in.Gone
	options.Names = t.names.Update(in.Management)
	options.Limits = virtualmesh.DiscoveryLimits(settings)
	same := len(in.Clusters) == len(t.clusters) && options.Names == t.names
	for _, c := range in.Clusters {
		was := t.clusters[c.Name]
		options.Installed = virtualmesh.ControlPlaneNamespaces(settings, c.Name)
		now := &clusterCache{from: c, stored: in.Management, installed: options.Installed, limits: options.Limits, gone: in.Gone, names: options.Names}
		switch {
		case was != nil && was.from == c && was.sameSettings(now) && slices.Equal(was.gone, now.gone) && !was.outdated(in.Management, options.Names):
			was.stored = in.Management // the next comparison is with what is the same by pointer
			now = was
		case c.Sync == snapshot.Unsynced:
			now.found = discovery.FromStored(c.Name, in.Management)
		default:
			now.found = discovery.Discover(c, options)
		}
		if was != nil && now != was {
			now.found = discovery.Reuse(was.found, now.found)
		}
		next[c.Name] = now
		out = append(out, now.found)
		same = same && was != nil && was.found == now.found
	}
	if !same {
		out = discovery.Distinct(out, options.Names)
	}
	for i, d := range out {
		was := t.clusters[d.Cluster]
		switch {
		case same:
			d = was.distinct
		case was != nil:
			d = discovery.Reuse(was.distinct, d)
		}
		out[i], next[d.Cluster].distinct = d, d
	}
	t.names = options.Names
	t.clusters = next
	from := *in // who made it may make another one of it
	t.from, t.found = &from, out
	return out
}

// sameToDiscover reports whether two inputs have all in common, by identity, from which
// discovery follows: then no cluster has to be looked at by itself.
func sameToDiscover(a, b *snapshot.Input) bool {
	m, n := a.Management, b.Management
	return slices.Equal(a.Clusters, b.Clusters) && slices.Equal(a.Gone, b.Gone) &&
		m.Namespace == n.Namespace && m.PlaneID == n.PlaneID && snapshot.SameSlice(m.Settings, n.Settings) &&
		snapshot.SameSlice(m.Meshes, n.Meshes) && snapshot.SameSlice(m.Workloads, n.Workloads) && snapshot.SameSlice(m.Destinations, n.Destinations)
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
