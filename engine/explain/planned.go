package explain

import (
	"slices"
	"strconv"
	"strings"

	"github.com/meshctl/meshctl/engine/snapshot"
)

// Planned is what a change of objects does: to the objects that are written, and to traffic.
type Planned struct {
	// Verdict is all of it in a line: how much changes, and the worst that it does.
	Verdict string `json:"verdict"`
	// Refused are objects that the API server would not take. Nothing else counts them.
	Refused []Refusal `json:"refused,omitempty"`
	// Unasked says why the API server was not asked what the objects would be, although there is one; empty if it was.
	Unasked string `json:"unasked,omitempty"`
	// Changes are the objects that are changed by hand, ascending by Ref.
	Changes []PlannedChange `json:"changes"`
	// Effects are what it does to traffic, harm first.
	Effects []Effect `json:"effects"`
	*Comparison
	// Counts are for the clusters in which something differs, ascending by name.
	Counts []ObjectCount `json:"counts"`
	// Seen is what the callers sent that lose calls; nil if none does, or where nobody counts, as for a folder.
	Seen *PlannedSeen `json:"seen,omitempty"`
	// Notes are sentences on what could not be looked at.
	Notes []string `json:"notes,omitempty"`
	// Graph has the calls to the services that are concerned, before and after; nil if there are none.
	Graph *GraphChange `json:"graph,omitempty"`
}

// PlannedChange is an object that is changed by hand.
type PlannedChange struct {
	Ref snapshot.Ref `json:"ref"`
	// Verb is created, changed, deleted or unchanged.
	Verb string `json:"verb"`
}

// ObjectCount is how many objects are generated for a cluster; the empty name is the management
// plane.
type ObjectCount struct {
	Cluster string `json:"cluster"`
	Before  int    `json:"before"`
	After   int    `json:"after"`
}

// newPlanned compares two translations by one Translator, of which the second one has the changes.
func newPlanned(before, after *Index, changes []PlannedChange) (*Planned, error) {
	comparison, err := Compare(before.state.Output, after.state.Output)
	if err != nil {
		return nil, err
	}
	out := &Planned{Changes: changes, Effects: Effects(before, after), Comparison: comparison, Counts: []ObjectCount{}}
	if out.Effects == nil {
		out.Effects = []Effect{}
	}
	if out.Comparison.Clusters == nil {
		out.Comparison.Clusters = []ClusterComparison{}
	}
	was, is := objectsWritten(before.state.Output), objectsWritten(after.state.Output)
	for _, c := range comparison.Clusters {
		out.Counts = append(out.Counts, ObjectCount{Cluster: c.Cluster, Before: was[c.Cluster], After: is[c.Cluster]})
	}
	slices.SortFunc(out.Changes, func(a, b PlannedChange) int { return a.Ref.Compare(b.Ref) })
	for _, c := range after.state.Input.Clusters {
		if reason := after.frozenReason(c.Name); reason != "" {
			out.Notes = append(out.Notes, "cluster "+c.Name+" is not watched ("+reason+"): nothing is written there until it is")
		}
	}
	out.Seen = plannedSeen(before, out.Effects)
	for _, c := range out.Changes {
		if note := auditSentence(after, c.Ref); note != "" {
			out.Notes = append(out.Notes, note)
		}
	}
	out.Graph = changedGraph(before, after, out.Effects)
	out.Verdict = out.verdict()
	return out, nil
}

// compareModes notes what proxies hold with each mode of federation, where that changes.
func (p *Planned) compareModes(before, after *Index, translate func(*snapshot.Input) *snapshot.State) error {
	for _, ref := range sortedRefs(after.virtualMeshes) {
		was := before.virtualMeshes[ref]
		if was != nil && slices.Equal(was.Loads, after.virtualMeshes[ref].Loads) {
			continue
		}
		modes, err := FederationSizes(after, ref, translate)
		if err != nil {
			return err
		}
		if len(modes) > 0 {
			p.Notes = append(p.Notes, "VirtualMesh "+shortName(ref)+" has each proxy hold, of other meshes, at most "+modesText(modes))
		}
	}
	return nil
}

// objectsWritten counts the objects of each cluster.
func objectsWritten(out *snapshot.Output) map[string]int {
	counts := map[string]int{}
	for o := range out.Written {
		counts[o.Ref.Cluster]++
	}
	return counts
}

// Empty reports whether nothing at all would change.
func (p *Planned) Empty() bool {
	return len(p.Clusters)+len(p.Effects)+len(p.NewIssues)+len(p.FixedIssues) == 0 &&
		!slices.ContainsFunc(p.Changes, func(c PlannedChange) bool { return c.Verb != Unchanged })
}

// The verbs of a PlannedChange.
const (
	Created   = "created"
	Changed   = "changed"
	Deleted   = "deleted"
	Unchanged = "unchanged"
)

// Verbs counts the objects of a cluster by verb: "2 created, 1 changed".
func (c *ClusterComparison) Verbs() string { return c.counted(" created", " changed", " removed") }

// ToDo counts what will be done with the objects of a cluster: "2 to create, 1 to change".
func (c *ClusterComparison) ToDo() string { return c.counted(" to create", " to change", " to remove") }

// counted counts the objects by verb, with a word for each.
func (c *ClusterComparison) counted(created, changed, removed string) string {
	var parts []string
	for _, verb := range [][2]string{{"created", created}, {"changed", changed}, {"removed", removed}} {
		n := 0
		for i := range c.Objects {
			if c.Objects[i].Verb() == verb[0] {
				n++
			}
		}
		if n > 0 {
			parts = append(parts, strconv.Itoa(n)+verb[1])
		}
	}
	return strings.Join(parts, ", ")
}
