package explain

import (
	"cmp"
	"maps"
	"slices"

	"github.com/meshctl/meshctl/engine/snapshot"
)

// AreAliasesUnread reports whether Services of type ExternalName are not known, as they are only in the clusters, which were not read.
func AreAliasesUnread(x *Index) bool { return x.unread }

// NotRead says what was not read of clusters, though answers follow it: what it decides is then not in any answer. Without clusters
// it is about all. Empty if all was read.
func (x *Index) NotRead(clusters ...string) string {
	wanted := func(cluster string) bool { return len(clusters) == 0 || slices.Contains(clusters, cluster) }
	byReason := map[string][]string{}
	for _, c := range x.state.Input.Clusters {
		if reason := notReadReason(x, c); reason != "" && wanted(c.Name) {
			byReason[reason] = append(byReason[reason], c.Name)
		}
	}
	var said []string
	for _, reason := range slices.Sorted(maps.Keys(byReason)) {
		names := byReason[reason]
		said = append(said, firstOf(names)+was(len(names))+" not read: "+reason)
	}
	var denied, unsent []string
	for _, m := range x.state.Plan.Meshes {
		c := x.clusters[m.Cluster]
		if c == nil || !wanted(m.Cluster) || notReadReason(x, c) != "" {
			continue
		}
		kinds := slices.DeleteFunc(slices.Clone(c.Denied), func(k snapshot.Kind) bool { return !decides(m.Dialect, k) })
		isUnsent := func(k snapshot.Kind) bool { return slices.Contains(c.Unsent, k) }
		if forbidden := slices.DeleteFunc(slices.Clone(kinds), isUnsent); len(forbidden) > 0 {
			denied = append(denied, kindNames(forbidden)+" of "+m.Cluster)
		}
		if old := slices.DeleteFunc(kinds, func(k snapshot.Kind) bool { return !isUnsent(k) }); len(old) > 0 {
			unsent = append(unsent, kindNames(old)+" of "+m.Cluster)
		}
	}
	if len(denied) > 0 {
		slices.Sort(denied)
		said = append(said, firstOf(slices.Compact(denied))+", which meshctl may not read, and which may decide otherwise: register the cluster again")
	}
	if len(unsent) > 0 {
		slices.Sort(unsent)
		said = append(said, firstOf(slices.Compact(unsent))+", which the agent is too old to send, and which may decide otherwise: register the cluster again with --agent-image")
	}
	return snapshot.Sentences(atMost(said)...)
}

// decides reports whether objects of a kind that users write may decide about requests in meshes of a dialect.
func decides(d *snapshot.Dialect, kind snapshot.Kind) bool {
	return d.Reads[kind] != nil && kind.Info().Effect&snapshot.Counts == 0
}

// atMost keeps the first sentences, and counts the others.
func atMost(said []string) []string {
	const most = 3
	if more := len(said) - most; more > 0 {
		said = append(said[:most:most], snapshot.Count(more, "more reason"))
	}
	return said
}

// notReadReason says why a cluster was not read; empty if it was.
func notReadReason(x *Index, c *snapshot.Cluster) string {
	switch {
	case !c.Frozen():
		return ""
	case onlyByAgent(x, c.Name):
		reason := "it is reached via relay, and its agent speaks to meshctl serve only; what that has stored is used, without what users wrote there"
		if o := x.storedOutage(c.Name); o != nil {
			reason += prefixed("; ", o.What)
		}
		return reason
	}
	return cmp.Or(c.Reason, "nothing was read from it yet")
}

func was(n int) string {
	if n == 1 {
		return " was"
	}
	return " were"
}
