package explain

import (
	"maps"
	"slices"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/meshctl/meshctl/engine/snapshot"
)

// Delta is what differs between two recordings.
type Delta struct {
	Before Recording `json:"before"`
	After  Recording `json:"after"`
	// Fleet are the clusters that came, went, were lost or found, ascending by name.
	Fleet []FleetChange `json:"fleet"`
	*Planned
}

// Recording is one of the two.
type Recording struct {
	// Name is the folder or the file; empty for what is now.
	Name string `json:"name,omitempty"`
	// Recorded is when; zero if that is not known, and for what is now.
	Recorded time.Time `json:"recorded,omitzero"`
}

// FleetChange is a cluster that is not as it was.
type FleetChange struct {
	Cluster string `json:"cluster"`
	// Change is registered, deregistered, lost (it could be read before, and cannot now) or found.
	Change string `json:"change"`
	// Reason says why it cannot be read, if it was lost.
	Reason string `json:"reason,omitempty"`
}

// The changes of a FleetChange.
const (
	Registered   = "registered"
	Deregistered = "deregistered"
	Lost         = "lost"
	Found        = "found"
)

// Diff compares two translations by one Translator. Objects that users wrote count as changed if their spec, labels or
// annotations differ.
func Diff(before, after *Index) (*Delta, error) {
	changes, err := writtenChanges(before.state.Input.Management, after.state.Input.Management)
	if err != nil {
		return nil, err
	}
	planned, err := newPlanned(before, after, changes)
	if err != nil {
		return nil, err
	}
	return &Delta{Fleet: fleetChanges(before, after), Planned: planned}, nil
}

// Empty reports whether nothing differs.
func (d *Delta) Empty() bool { return len(d.Fleet) == 0 && d.Planned.Empty() }

func fleetChanges(before, after *Index) []FleetChange {
	out := []FleetChange{}
	for _, name := range slices.Sorted(maps.Keys(after.clusters)) {
		was, is := before.clusters[name], after.clusters[name]
		switch {
		case was == nil:
			out = append(out, FleetChange{Cluster: name, Change: Registered})
		case !was.Frozen() && is.Frozen():
			out = append(out, FleetChange{Cluster: name, Change: Lost, Reason: is.Reason})
		case was.Frozen() && !is.Frozen():
			out = append(out, FleetChange{Cluster: name, Change: Found})
		}
	}
	for name := range before.clusters {
		if after.clusters[name] == nil {
			out = append(out, FleetChange{Cluster: name, Change: Deregistered})
		}
	}
	slices.SortFunc(out, func(a, b FleetChange) int { return strings.Compare(a.Cluster, b.Cluster) })
	return out
}

// writtenChanges are the objects of users that differ.
func writtenChanges(before, after *snapshot.Management) ([]PlannedChange, error) {
	out := []PlannedChange{}
	for kind, list := range after.Lists {
		old := before.List(kind)
		for i := range list.Len() {
			is := list.At(i)
			was := old.Find(is.GetNamespace(), is.GetName())
			if !snapshot.WrittenByUsers(kind, is) && (was == nil || !snapshot.WrittenByUsers(kind, was)) {
				continue
			}
			verb := Created
			if was != nil {
				same, err := sameWritten(was, is)
				if err != nil {
					return nil, err
				}
				if same {
					continue
				}
				verb = Changed
			}
			out = append(out, PlannedChange{Ref: snapshot.RefOf(kind, is), Verb: verb})
		}
		for i := range old.Len() {
			if was := old.At(i); snapshot.WrittenByUsers(kind, was) && list.Find(was.GetNamespace(), was.GetName()) == nil {
				out = append(out, PlannedChange{Ref: snapshot.RefOf(kind, was), Verb: Deleted})
			}
		}
	}
	return out, nil
}

// sameWritten reports whether two versions of an object have the same spec, labels and annotations.
func sameWritten(a, b snapshot.APIObject) (bool, error) {
	was, err := runtime.DefaultUnstructuredConverter.ToUnstructured(a)
	if err != nil {
		return false, err
	}
	is, err := runtime.DefaultUnstructuredConverter.ToUnstructured(b)
	if err != nil {
		return false, err
	}
	return equality.Semantic.DeepEqual(was["spec"], is["spec"]) && equality.Semantic.DeepEqual(a.GetLabels(), b.GetLabels()) &&
		equality.Semantic.DeepEqual(annotationsOf(a), annotationsOf(b)), nil
}
