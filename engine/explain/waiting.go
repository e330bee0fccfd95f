package explain

import "github.com/meshctl/meshctl/engine/snapshot"

// notTakenUp is said of objects whose present version no server has looked at.
const (
	notTakenUp     = "its present version has not been taken up"
	notTakenUpNext = "this takes a moment after an edit; if it stays so, see whether the server runs: meshctl serve"
)

// note puts into a row what is wrong with an object: its worst issue, or that
// it waits.
func (x *Index) note(row *Row, ref snapshot.Ref, issues []snapshot.Issue) {
	switch {
	case len(issues) > 0:
		row.Note, row.Next = issues[0].Message, issues[0].Hint
	case x.waiting[ref]:
		row.Level, row.Note, row.Next = max(row.Level, Noted), notTakenUp, notTakenUpNext
	}
}

// Waiting counts, by cluster, the policies and VirtualMeshes that concern it
// and wait to be taken up.
func (x *Index) Waiting() map[string]int {
	out := map[string]int{}
	for ref := range x.waiting {
		concerned := map[string]bool{}
		if p := x.policies[ref]; p != nil {
			for i := range p.Verdicts {
				concerned[x.clusterOf(p.Verdicts[i].Destination)] = true
			}
		}
		if v := x.virtualMeshes[ref]; v != nil {
			for _, m := range v.Members {
				concerned[m.Cluster] = true
			}
		}
		for cluster := range concerned {
			out[cluster]++
		}
	}
	return out
}
