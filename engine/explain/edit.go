package explain

import (
	"encoding/json"
	"fmt"
	"time"

	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/meshctl/meshctl/engine/snapshot"
)

// Edit is an object of the management plane to write or to delete. To delete a KubernetesCluster is to
// deregister the cluster.
type Edit struct {
	Ref snapshot.Ref
	// Object to write; nil to delete it. Plan completes it with what an API server sets.
	Object snapshot.APIObject
}

// Plan says what edits would do, and returns the Index of the edited Input. Translate is that of the
// Translator that made the State of x. Now is when new objects are created, which decides their precedence.
func (x *Index) Plan(translate func(*snapshot.Input) *snapshot.State, edits []Edit, now time.Time) (*Planned, *Index, error) {
	input, planned := x.state.Input, make([]PlannedChange, 0, len(edits))
	for _, e := range edits {
		verb, edited, err := e.apply(input, now)
		if err != nil {
			return nil, nil, fmt.Errorf("%s: %w", e.Ref, err)
		}
		input, planned = edited, append(planned, PlannedChange{Ref: e.Ref, Verb: verb})
	}
	after := New(translate(input))
	out, err := newPlanned(x, after, planned)
	if err == nil {
		err = out.compareModes(x, after, translate)
	}
	return out, after, err
}

// apply returns an Input with the edit, and what it does to the object: a verb of a PlannedChange.
func (e *Edit) apply(in *snapshot.Input, now time.Time) (verb string, edited *snapshot.Input, err error) {
	stored := in.Find(e.Ref)
	if e.Object == nil {
		if e.Ref.Kind == snapshot.KubernetesCluster && e.Ref.Namespace == in.Management.Namespace && in.Cluster(e.Ref.Name) != nil {
			return Deleted, in.WithoutCluster(e.Ref.Name), nil
		}
		if stored == nil {
			return Unchanged, in, nil
		}
		return Deleted, in.Without(e.Ref), nil
	}
	same, err := complete(e.Object, stored, now)
	if err != nil || same {
		return Unchanged, in, err
	}
	if verb = Created; stored != nil {
		verb = Changed
	}
	edited, err = in.With("", e.Object)
	return verb, edited, err
}

// complete sets what an API server sets: the status, the creation time (in seconds) and the generation, from
// the object that this one replaces, or nil. It reports whether both are the same.
func complete(object, stored snapshot.APIObject, now time.Time) (same bool, err error) {
	if stored == nil {
		object.SetCreationTimestamp(metav1.NewTime(now).Rfc3339Copy())
		object.SetGeneration(1)
		return false, nil
	}
	object.SetCreationTimestamp(stored.GetCreationTimestamp())
	object.SetGeneration(stored.GetGeneration())
	object.SetUID(stored.GetUID())
	was, err := runtime.DefaultUnstructuredConverter.ToUnstructured(stored)
	if err != nil {
		return false, err
	}
	is, err := runtime.DefaultUnstructuredConverter.ToUnstructured(object)
	if err != nil {
		return false, err
	}
	if !equality.Semantic.DeepEqual(was["spec"], is["spec"]) {
		object.SetGeneration(stored.GetGeneration() + 1)
	} else if equality.Semantic.DeepEqual(stored.GetLabels(), object.GetLabels()) && equality.Semantic.DeepEqual(annotationsOf(stored), annotationsOf(object)) {
		return true, nil
	}
	status, err := json.Marshal(map[string]any{"status": was["status"]})
	if err != nil {
		return false, err
	}
	return false, json.Unmarshal(status, object)
}

// annotationsOf leaves out the annotation that kubectl apply writes.
func annotationsOf(o snapshot.APIObject) map[string]string {
	out := map[string]string{}
	for key, value := range o.GetAnnotations() {
		if key != "kubectl.kubernetes.io/last-applied-configuration" {
			out[key] = value
		}
	}
	return out
}
