package policy

import (
	"maps"
	"reflect"

	observabilityv1 "github.com/meshctl/meshctl/engine/api/observability/v1"
	"github.com/meshctl/meshctl/engine/snapshot"
	"github.com/meshctl/meshctl/engine/virtualmesh"
)

// maxLocalRecords is how many AccessLogRecords count in a namespace of a registered cluster, the oldest first: an agent gets a bounded
// number, which all namespaces of its cluster share.
const maxLocalRecords = 10

// Records are the AccessLogRecords of an Input: those of the management cluster as they are, and those of registered clusters as far as
// they reach. The zero value is ready for use.
type Records struct {
	of policies[*observabilityv1.AccessLogRecord]
	// in and scope are what they were last read from.
	in    *snapshot.Input
	scope virtualmesh.Scope
}

var localRecords = localKind[*observabilityv1.AccessLogRecord]{
	snapshot.AccessLogRecord, func(c *snapshot.Cluster) []*observabilityv1.AccessLogRecord { return c.AccessLogRecords }, sameRecord, boundRecord,
}

// Next returns the records of an Input, ascending by Ref. One that is equal to the last one is the same.
func (r *Records) Next(in *snapshot.Input, scope *virtualmesh.Scope) []*observabilityv1.AccessLogRecord {
	if r.in == nil || !sameRecords(r.in, in) || !r.scope.Equal(scope) {
		r.of = r.of.next(in, in.Management.AccessLogRecords, scope, localRecords)
	}
	r.in, r.scope = in, *scope
	return r.of.all
}

// Issues are what there is to say of a record of a registered cluster as a whole. While they are the same, they are the same slice.
func (r *Records) Issues(of snapshot.Ref) []snapshot.Issue {
	if p := r.of.found[of]; p != nil {
		return p.issues
	}
	return nil
}

// sameRecords reports whether two Inputs have the same lists of records, and say the same of which cluster is the management cluster.
func sameRecords(a, b *snapshot.Input) bool {
	m, o := a.Management, b.Management
	if len(a.Clusters) != len(b.Clusters) || !snapshot.SameSlice(m.AccessLogRecords, o.AccessLogRecords) ||
		m.ClusterUID != o.ClusterUID || !snapshot.SameSlice(m.KubernetesClusters, o.KubernetesClusters) {
		return false
	}
	for i, c := range a.Clusters {
		if c.Name != b.Clusters[i].Name || !snapshot.SameSlice(c.AccessLogRecords, b.Clusters[i].AccessLogRecords) {
			return false
		}
	}
	return true
}

// sameRecord compares what verdicts depend on. Until when a record logs stands in an annotation, and what was said of it last in its status.
func sameRecord(a, b *observabilityv1.AccessLogRecord) bool {
	return a == b || a.Status.State == b.Status.State && a.Status.ObservedGeneration == b.Status.ObservedGeneration &&
		maps.Equal(a.Annotations, b.Annotations) && reflect.DeepEqual(&a.Spec, &b.Spec)
}
