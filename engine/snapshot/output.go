package snapshot

import (
	"slices"
	"time"
)

// Output is the desired state: the objects to have, the statuses to write, the
// issues found, and the clusters that are frozen. Unchanged parts are shared by
// pointer with the Output before.
type Output struct {
	// Parts group the objects by what they were made for, ascending by Key.
	// No two objects of an Output have the same Ref.
	Parts List[*Part]
	// Foreign are the objects of Parts under whose names there are some that are not ours, as far as these are read: sinks leave them
	// as they are. Ascending.
	Foreign []Ref
	// Statuses are to be written on the management plane, ascending by Ref.
	Statuses List[*Status]
	// Issues are ordered by Issue.Compare.
	Issues []Issue
	// Frozen names the clusters in which nothing may be written or collected, ascending.
	Frozen []string
	// Clusters names all registered clusters, ascending: objects of ours in one of
	// them that are in no Part are garbage. A cluster that is not listed is not
	// changed.
	Clusters []string
	// Debounces are those of the slowest control plane of each cluster, without the
	// clusters where that is UsualDebounce; nil if there are no others.
	Debounces map[string]Debounce
	// Withdrawals bound what is deleted without a user's edit that explains it.
	Withdrawals Withdrawals
}

// Withdrawals bound what is deleted without a user's edit that explains it.
type Withdrawals struct {
	// Grace is how long an object stays after what it followed from has gone.
	Grace time.Duration
	// MaxPercent of a cluster's objects may go at once; if more would, none does.
	MaxPercent int
}

// UsualWithdrawals are those without Settings.
var UsualWithdrawals = Withdrawals{Grace: 5 * time.Minute, MaxPercent: 50}

// Part is the objects made for one destination, mesh or cluster.
type Part struct {
	// Key is unique in an Output, such as "destination/reviews-bookinfo-cluster-1".
	Key string
	// Objects are ascending by Ref.
	Objects []*Object
}

// Object is one object to have in one cluster.
type Object struct {
	Ref     Ref
	Content *Content
}

// Content is all of an object but its name. Objects that differ only by
// cluster share one.
type Content struct {
	// Labels and Annotations are the ones the engine owns. Sinks add the label
	// cluster.multicluster.solo.io, whose value is Ref.Cluster.
	Labels      map[string]string
	Annotations map[string]string
	// Spec marshals to the JSON of the object's spec.
	Spec any
	// Parents are the objects of users (policies, VirtualMeshes) from which this one
	// follows: their status reports a failed write.
	Parents []Ref
	// Relations say in which order it is written and withdrawn.
	Relations Relations `json:",omitzero"`
}

// Status is the status of one management-plane object.
type Status struct {
	Ref Ref
	// Value marshals to the JSON of the object's status.
	Value any
}

// IsFrozen reports whether nothing may be written to the cluster.
func (o *Output) IsFrozen(cluster string) bool {
	for _, name := range o.Frozen {
		if name == cluster {
			return true
		}
	}
	return false
}

// Objects calls yield for each object, part by part, until it returns false.
func (o *Output) Objects(yield func(*Object) bool) {
	for part := range o.Parts.All() {
		for _, object := range part.Objects {
			if !yield(object) {
				return
			}
		}
	}
}

// Written calls yield for each object that has a place of its own (see Foreign), until it returns false.
func (o *Output) Written(yield func(*Object) bool) {
	for object := range o.Objects {
		if !o.IsForeign(object.Ref) && !yield(object) {
			return
		}
	}
}

// IsForeign reports whether the name of an object is that of another one, which is not ours.
func (o *Output) IsForeign(ref Ref) bool {
	_, found := slices.BinarySearchFunc(o.Foreign, ref, Ref.Compare)
	return found
}
