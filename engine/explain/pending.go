package explain

import "github.com/meshctl/meshctl/engine/snapshot"

// The note and the next step for objects whose latest version no server has processed.
const (
	notProcessed     = "its latest version has not been processed yet"
	notProcessedNext = "this takes a moment after an edit; if it does not change, check that the server runs: meshctl serve"
)

// setNote puts the worst issue of an object into its row or, if there is none, that
// its latest version waits to be processed.
func (x Tables) setNote(row *Row, issues []snapshot.Issue) {
	row.setIssue(issues)
	if len(issues) == 0 && x.pending[row.Ref] {
		row.Level, row.Note, row.Next = Info, notProcessed, notProcessedNext
	}
}

// Pending counts, by cluster, the objects that users write which concern it
// and wait to be processed.
func (x *Index) Pending() map[string]int {
	out := map[string]int{}
	for ref := range x.pending {
		concerned := map[string]bool{}
		if p := x.policies[ref]; p != nil {
			for i := range p.Verdicts {
				concerned[x.clusterOf(p.Verdicts[i].Destination)] = true
			}
		}
		if p := x.dependencies[ref]; p != nil {
			for i := range p.Verdicts {
				concerned[x.clusterOfWorkload(p.Verdicts[i].Destination)] = true
			}
		}
		if v := x.virtualDestinations[ref]; v != nil {
			for _, b := range v.Backing {
				concerned[x.clusterOf(b.Ref)] = true
			}
		}
		if v := x.virtualMeshes[ref]; v != nil {
			for _, m := range v.Members {
				concerned[m.Cluster] = true
			}
		}
		delete(concerned, "") // what has no cluster
		for cluster := range concerned {
			out[cluster]++
		}
	}
	return out
}
