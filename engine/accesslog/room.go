package accesslog

import (
	"cmp"
	"slices"

	commonv1 "github.com/meshctl/meshctl/engine/api/common/v1"
	"github.com/meshctl/meshctl/engine/inventory"
	"github.com/meshctl/meshctl/engine/snapshot"
)

// bound rejects the records that are too many. An agent knows of MaxRecords: those of the management cluster come first, whatever others
// write, and what they leave is for the namespaces of its own cluster.
func bound(plans []*Plan) {
	var hub []*Plan
	inClusters := map[string][]*Plan{}
	for _, p := range plans {
		switch {
		case p.State == commonv1.ApprovalStateInvalid:
		case p.Ref.Cluster != "":
			inClusters[p.Ref.Cluster] = append(inClusters[p.Ref.Cluster], p)
		case len(hub) < MaxRecords:
			hub = append(hub, p)
		default:
			reject(p, snapshot.Errorf(snapshot.BudgetExceeded, "join AccessLogRecords, or remove some", "at most %d AccessLogRecords are in force, and this is one more", MaxRecords))
		}
	}
	if len(inClusters) == 0 {
		return
	}
	named := map[string]snapshot.Ref{}
	for _, p := range plans {
		if p.Ref.Cluster == "" {
			named[p.Ref.Identity()] = p.Ref
		}
	}
	for cluster, records := range inClusters {
		room := MaxRecords
		for _, p := range hub {
			if reaches(p, cluster) {
				room--
			}
		}
		for _, p := range inTurn(records) {
			other, taken := named[p.Ref.Identity()]
			switch {
			case taken:
				reject(p, snapshot.Errorf(snapshot.FieldConflict, "give it another name",
					"it has no effect: entries of the log would name it as they name AccessLogRecord %s of the management cluster", other.Identity()).At("metadata.name").CausedBy(other))
			case room == 0:
				reject(p, snapshot.Errorf(snapshot.BudgetExceeded, "join AccessLogRecords of the namespace, or ask an administrator of the management cluster to remove some there",
					"it has no effect: at most %d AccessLogRecords are in force in cluster %s, those of the management cluster first", MaxRecords, cluster))
			default:
				room--
			}
		}
	}
}

func reject(p *Plan, why snapshot.Issue) {
	p.State, p.Issues = commonv1.ApprovalStateInvalid, append(p.Issues, why.On(p.Ref, snapshot.Ref{}))
}

// inTurn are the records of a cluster in the order in which they get a place: the oldest of each namespace, then the second of each, so that
// no namespace takes the place of another's first one.
func inTurn(records []*Plan) []*Plan {
	type placed struct {
		plan *Plan
		turn int
	}
	byAge := slices.Clone(records)
	slices.SortFunc(byAge, func(a, b *Plan) int { return inventory.CompareAge(a.Record, b.Record) })
	turns, order := map[string]int{}, make([]placed, len(byAge))
	for i, p := range byAge {
		order[i] = placed{p, turns[p.Ref.Namespace]}
		turns[p.Ref.Namespace]++
	}
	slices.SortStableFunc(order, func(a, b placed) int { return cmp.Compare(a.turn, b.turn) })
	out := make([]*Plan, len(order))
	for i, o := range order {
		out[i] = o.plan
	}
	return out
}
