package explain

import (
	"strconv"

	"github.com/meshctl/meshctl/engine/snapshot"
)

// otherPolicies are the rows, in the table of policies, of what else users write
// for a mesh: VirtualDestinations and ServiceDependencies.
func (x *Index) otherPolicies() []Row {
	var rows []Row
	add := func(kind string, ref snapshot.Ref, labels map[string]string, state string, targets int, created string, clusters []string) {
		issues := x.issuesOf(ref)
		row := Row{Key: ref.String(), Ref: ref, Level: levelOf(issues), Labels: labels, Clusters: clusters}
		x.note(&row, ref, issues)
		row.Cells = []string{kind, ref.Name, ref.Namespace, state, strconv.Itoa(targets), "", created, worst(issues)}
		rows = append(rows, row)
	}
	for _, v := range x.state.Plan.VirtualDestinations {
		var clusters []string
		for _, b := range v.Backing {
			clusters = append(clusters, b.Destination.Spec.KubeService.Ref.ClusterName)
		}
		o := v.VirtualDestination
		add("Failover", v.Ref, o.Labels, string(x.stateOf(v.Ref, o.Status.State)), len(v.Backing), moment(o.CreationTimestamp.Time), clusters)
	}
	for _, p := range x.state.Plan.Dependencies {
		o := p.Dependency
		add("Dependency", p.Ref, o.Labels, string(x.stateOf(p.Ref, o.Status.State)), len(p.Verdicts), moment(o.CreationTimestamp.Time), nil)
	}
	return rows
}
