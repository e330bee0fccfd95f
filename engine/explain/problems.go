package explain

import (
	"slices"
	"strconv"

	"github.com/meshctl/meshctl/engine/snapshot"
)

// Problems lists all issues, worst first.
func (x *Index) Problems() Table {
	t := Table{
		Columns: columns("SEVERITY", "OBJECT", "ON", "PROBLEM", "+CODE"),
		Empty:   "No problems: every policy is in force where it should be, and every cluster can be read.",
	}
	for _, issue := range x.Issues() {
		level := Level(issue.Severity) + Noted
		var on string
		if issue.Target != (snapshot.Ref{}) && issue.Target != issue.Ref {
			on = issue.Target.Name
		}
		row := Row{
			// Two issues may say the same of one object on two targets.
			Key: issue.Ref.String() + " " + issue.Target.String() + " " + string(issue.Code) + " " + issue.Message,
			Ref: x.nearest(issue), Level: level, Note: issue.Message, Next: issue.Hint,
			Cells: []string{issue.Severity.String(), issue.Ref.String(), on, issue.Message, string(issue.Code)},
		}
		if cluster := x.clusterOfIssue(issue); cluster != "" {
			row.Clusters = []string{cluster}
		}
		t.Rows = append(t.Rows, row)
	}
	unique := map[string]int{}
	for i := range t.Rows {
		key := t.Rows[i].Key
		if unique[key]++; unique[key] > 1 {
			t.Rows[i].Key += " " + strconv.Itoa(unique[key])
		}
	}
	return t
}

// Issues lists all that there are, worst first: those of the Output, and those
// that only stored statuses tell.
func (x *Index) Issues() []snapshot.Issue {
	if !x.stored {
		return append([]snapshot.Issue{}, x.state.Output.Issues...)
	}
	all := []snapshot.Issue{}
	for _, issues := range x.issues {
		all = append(all, issues...)
	}
	for _, c := range x.state.Input.Clusters {
		health, why := x.health(c.Name)
		if health == Frozen && x.unread {
			all = append(all, snapshot.Issue{
				Code: snapshot.ClusterFrozen, Severity: snapshot.Error, Ref: x.clusterRef(c.Name),
				Message: "nothing is changed there: " + why, Hint: "see whether its API server runs, and run: meshctl cluster list",
			})
		}
	}
	slices.SortFunc(all, snapshot.Issue.Compare)
	return slices.Compact(all)
}

// nearest is the object of an issue that can be described: the one to mend, or
// else the one on which it matters.
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
		case ref.Kind == snapshot.Workload && x.workloads[ref] != nil && x.workloads[ref].Spec.Kubernetes != nil:
			return x.workloads[ref].Spec.Kubernetes.Controller.ClusterName
		}
	}
	return ""
}
