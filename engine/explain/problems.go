package explain

import (
	"slices"
	"strconv"

	"github.com/meshctl/meshctl/engine/snapshot"
)

// Problems lists all issues, worst first.
func (w *World) Problems() Table {
	t := Table{
		Columns: columns("SEVERITY", "OBJECT", "ON", "PROBLEM", "+CODE"),
		Empty:   "No problems: every policy is in force where it should be, and every cluster can be read.",
	}
	for _, issue := range w.Issues() {
		level := Level(issue.Severity) + Noted
		var on string
		if issue.Target != (snapshot.Ref{}) && issue.Target != issue.Ref {
			on = issue.Target.Name
		}
		row := Row{
			// Two issues may say the same of one object on two targets.
			Key: issue.Ref.String() + " " + issue.Target.String() + " " + string(issue.Code) + " " + issue.Message,
			Ref: w.nearest(issue), Level: level, Note: issue.Message, Next: issue.Hint,
			Cells: []string{issue.Severity.String(), issue.Ref.String(), on, issue.Message, string(issue.Code)},
		}
		if cluster := w.clusterOfIssue(issue); cluster != "" {
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
func (w *World) Issues() []snapshot.Issue {
	if !w.stored {
		return append([]snapshot.Issue{}, w.state.Output.Issues...)
	}
	all := []snapshot.Issue{}
	for _, issues := range w.issues {
		all = append(all, issues...)
	}
	for _, c := range w.state.Input.Clusters {
		health, why := w.health(c.Name)
		if health == Frozen && w.unread {
			all = append(all, snapshot.Issue{
				Code: snapshot.ClusterFrozen, Severity: snapshot.Error, Ref: w.clusterRef(c.Name),
				Message: "nothing is changed there: " + why, Hint: "see whether its API server runs, and run: meshctl cluster list",
			})
		}
	}
	slices.SortFunc(all, snapshot.Issue.Compare)
	return slices.Compact(all)
}

// nearest is the object of an issue that can be described: the one to mend, or
// else the one on which it matters.
func (w *World) nearest(issue snapshot.Issue) snapshot.Ref {
	for _, ref := range []snapshot.Ref{issue.Ref, issue.Target} {
		switch {
		case ref.Kind == snapshot.KubernetesCluster && w.clusters[ref.Name] != nil:
			return w.clusterRef(ref.Name)
		case w.Has(ref):
			return ref
		}
	}
	return snapshot.Ref{}
}

// clusterOfIssue is the cluster that an issue is about; empty if it is about several.
func (w *World) clusterOfIssue(issue snapshot.Issue) string {
	for _, ref := range []snapshot.Ref{issue.Target, issue.Ref} {
		switch {
		case ref.Cluster != "":
			return ref.Cluster
		case ref.Kind == snapshot.KubernetesCluster:
			return ref.Name
		case ref.Kind == snapshot.Destination:
			if cluster := w.clusterOf(ref); cluster != "" {
				return cluster
			}
		case ref.Kind == snapshot.Mesh && w.meshes[ref] != nil:
			return w.meshes[ref].Cluster
		case ref.Kind == snapshot.Workload && w.workloads[ref] != nil && w.workloads[ref].Spec.Kubernetes != nil:
			return w.workloads[ref].Spec.Kubernetes.Controller.ClusterName
		}
	}
	return ""
}
