package explain

import (
	"slices"
	"strconv"
	"time"

	"github.com/meshctl/meshctl/engine/snapshot"
)

// Problems lists all issues that there are at a time, worst first.
func (x Tables) Problems(now time.Time) Table {
	problems := countPassing(ProblemList(x.Index, now))
	issue := func(p *Problem) *snapshot.Issue { return &p.Issue }
	columns := slices.Concat(sinceColumns(problems, 1, func(p *Problem) time.Time { return p.Since }), lift([]column[snapshot.Issue]{
		text("SEVERITY", 2, func(i *snapshot.Issue) string { return i.Severity.String() }),
		text("KIND", 0, func(i *snapshot.Issue) string { return i.Ref.Kind.String() }),
		text("NAME", 0, func(i *snapshot.Issue) string { return i.Ref.Name }),
		text("NAMESPACE", 4, func(i *snapshot.Issue) string { return i.Ref.Namespace }),
		text("CLUSTER", 3, func(i *snapshot.Issue) string { return i.Ref.Cluster }),
		text("ON", 1, func(i *snapshot.Issue) string {
			if i.Target == i.Ref {
				return ""
			}
			return i.Target.Name
		}),
		sentence("PROBLEM", func(i *snapshot.Issue) string { return i.Message }),
		text("CODE", 5, func(i *snapshot.Issue) string { return string(i.Code) }),
	}, issue))
	empty := "No problems: every policy is in force where it should be, and every cluster can be read."
	if not := x.NotRead(); not != "" {
		empty = "No problems, as far as was read. Not read: " + not
	}
	t := newTable(empty, columns, problems, func(p *Problem) Row {
		i := &p.Issue
		row := Row{
			// Two issues may say the same of one object on two targets.
			Key: i.Ref.String() + " " + i.Target.String() + " " + string(i.Code) + " " + i.Message,
			Ref: x.nearest(*i), Level: LevelOf(i.Severity), Note: i.Message, Next: i.Hint,
		}
		if i.Code == snapshot.RequestsFail || i.Code == snapshot.ShiftOffWeights { // its numbers change with each reading
			row.Key = i.Ref.String() + " " + i.Target.String() + " " + string(i.Code)
		}
		if cluster := x.clusterOfIssue(*i); cluster != "" {
			row.Clusters = []string{cluster}
		}
		return row
	})
	unique := map[string]int{}
	for i := range t.Rows {
		key := t.Rows[i].Key
		if unique[key]++; unique[key] > 1 {
			t.Rows[i].Key += " " + strconv.Itoa(unique[key])
		}
	}
	return t
}

// countPassing replaces the problems that pass by themselves by one that counts them.
func countPassing(problems []Problem) []Problem {
	rest := slices.DeleteFunc(slices.Clone(problems), func(p Problem) bool { return Passes(p.Issue) })
	if n := len(problems) - len(rest); n > 0 {
		rest = append(rest, Problem{Issue: snapshot.Issue{
			Severity: snapshot.Info, Code: snapshot.Drifted, Message: "and " + PassingText(n), Hint: "`meshctl describe problems -o wide` lists them",
		}})
	}
	return rest
}

// Issues lists all that there are, worst first: those of the Output, and those
// that only stored statuses tell.
func (x *Index) Issues() []snapshot.Issue {
	all := []snapshot.Issue{}
	for _, issues := range x.issues {
		all = append(all, issues...)
	}
	for _, c := range x.state.Input.Clusters {
		if o := outageOf(x, c.Name); o != nil && (x.unread || onlyByAgent(x, c.Name)) {
			all = append(all, o.Issue(x.clusterRef(c.Name)))
		}
	}
	slices.SortFunc(all, snapshot.Issue.Compare)
	return slices.Compact(all)
}

// nearest is the object of an issue that can be described: the one to fix, or else
// the one on which it matters.
func (x *Index) nearest(issue snapshot.Issue) snapshot.Ref {
	for _, ref := range []snapshot.Ref{issue.Ref, issue.Target} {
		switch {
		case ref.Kind == snapshot.KubernetesCluster && x.clusters[ref.Name] != nil:
			return x.clusterRef(ref.Name)
		case x.Has(ref):
			return ref
		}
	}
	return snapshot.Ref{}
}

// clusterOfIssue is the cluster that an issue is about; empty if it is about several.
func (x *Index) clusterOfIssue(issue snapshot.Issue) string {
	for _, ref := range []snapshot.Ref{issue.Target, issue.Ref} {
		switch {
		case ref.Cluster != "":
			return ref.Cluster
		case ref.Kind == snapshot.KubernetesCluster:
			return ref.Name
		case ref.Kind == snapshot.Destination:
			if cluster := x.clusterOf(ref); cluster != "" {
				return cluster
			}
		case ref.Kind == snapshot.Mesh && x.meshes[ref] != nil:
			return x.meshes[ref].Cluster
		case ref.Kind == snapshot.Workload:
			if cluster := x.clusterOfWorkload(ref); cluster != "" {
				return cluster
			}
		}
	}
	return ""
}
