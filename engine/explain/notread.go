package explain

import (
	"slices"

	"github.com/meshctl/meshctl/engine/snapshot"
)

// AreAliasesUnread reports whether Services of type ExternalName are not known, as they are only in the clusters, which were not read.
func AreAliasesUnread(x *Index) bool { return x.unread }

// NotRead says which objects that users write in clusters were not read, though answers follow them: what they decide is then
// not in any answer. Without clusters it is about all. Empty if all were read.
func (x *Index) NotRead(clusters ...string) string {
	var texts, byAgent []string
	for _, m := range x.state.Plan.Meshes {
		c := x.clusters[m.Cluster]
		if len(m.Dialect.Reads) == 0 || c == nil || len(clusters) > 0 && !slices.Contains(clusters, m.Cluster) {
			continue
		}
		if x.unread {
			return "what users wrote in the clusters, which may decide otherwise: ask with --clusters"
		}
		if onlyByAgent(x, m.Cluster) {
			byAgent = append(byAgent, m.Cluster)
			continue
		}
		denied := slices.DeleteFunc(slices.Clone(c.Denied), func(k snapshot.Kind) bool { return m.Dialect.Reads[k] == nil })
		if len(denied) > 0 {
			texts = append(texts, kindNames(denied)+" of "+m.Cluster)
		}
	}
	var said []string
	if len(byAgent) > 0 {
		slices.Sort(byAgent)
		said = append(said, "what users wrote in "+firstOf(slices.Compact(byAgent))+", whose agent speaks to meshctl serve only, and which may decide otherwise")
	}
	if len(texts) > 0 {
		slices.Sort(texts)
		said = append(said, firstOf(slices.Compact(texts))+", which meshctl may not read, and which may decide otherwise: register the cluster again")
	}
	return snapshot.Sentences(said...)
}
