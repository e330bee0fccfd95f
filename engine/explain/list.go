package explain

import "github.com/meshctl/meshctl/engine/snapshot"

// List is the table of all objects of a kind that can be described.
func (x *Index) List(kind snapshot.Kind) Table {
	switch kind {
	case snapshot.KubernetesCluster:
		return x.Clusters(nil)
	case snapshot.Mesh:
		return x.Meshes()
	case snapshot.Workload:
		return x.Workloads()
	case snapshot.Destination:
		return x.Destinations()
	case snapshot.VirtualMesh:
		return x.VirtualMeshes()
	case snapshot.VirtualDestination:
		return x.virtualDestinationTable()
	case snapshot.ServiceDependency:
		return x.serviceDependencyTable()
	case snapshot.TrafficPolicy, snapshot.AccessPolicy:
		return policyTable("There is no "+kind.String()+".", x.policyItems(kind), itself, nil, conflicts(), x)
	}
	return Table{}
}

// note puts the worst issue of an object into its row or, if it has none, that
// its latest version waits to be processed.
func (x *Index) note(row *Row, issues []snapshot.Issue) {
	row.note(issues)
	if len(issues) == 0 && x.pending[row.Ref] {
		row.Level, row.Note, row.Next = Info, notProcessed, notProcessedNext
	}
}

// note puts the worst of issues into a row.
func (r *Row) note(issues []snapshot.Issue) {
	r.Level = levelOf(issues)
	if len(issues) > 0 {
		r.Note, r.Next = issues[0].Message, issues[0].Hint
	}
}
