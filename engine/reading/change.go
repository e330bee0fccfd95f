package reading

import (
	"encoding/json"
	"fmt"
	"time"

	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/meshctl/meshctl/engine"
	"github.com/meshctl/meshctl/engine/explain"
	"github.com/meshctl/meshctl/engine/snapshot"
)

// Change is an object of the management plane that is to be written or deleted.
type Change struct {
	Ref snapshot.Ref
	// Object is what is to be written; nil to delete it. Plan completes it.
	Object snapshot.APIObject
}

// Plan says what changes would do. Now is when objects that are new are created, which decides their
// precedence.
func (r *Reading) Plan(changes []Change, now time.Time) (*explain.Planned, error) {
	input, planned := r.Input, make([]explain.PlannedChange, 0, len(changes))
	for _, c := range changes {
		stored := input.Find(c.Ref)
		change := explain.PlannedChange{Ref: c.Ref, Verb: explain.Created}
		switch {
		case c.Object == nil && stored == nil:
			change.Verb = explain.Unchanged
		case c.Object == nil:
			change.Verb, input = explain.Deleted, input.Without(c.Ref)
		default:
			same, err := succeed(c.Object, stored, now)
			if err != nil {
				return nil, fmt.Errorf("%s: %w", c.Ref, err)
			}
			if same {
				change.Verb = explain.Unchanged
				break
			}
			if stored != nil {
				change.Verb = explain.Changed
			}
			if input, err = input.With("", c.Object); err != nil {
				return nil, err
			}
		}
		planned = append(planned, change)
	}
	return r.planInput(input, planned)
}

// PlanWithout says what deregistering a cluster would do to traffic and to the other clusters; nil
// if it is not registered.
func (r *Reading) PlanWithout(cluster string) (*explain.Planned, error) {
	input := r.Input.WithoutCluster(cluster)
	if len(input.Clusters) == len(r.Input.Clusters) {
		return nil, nil
	}
	ref := snapshot.Ref{Kind: snapshot.KubernetesCluster, Namespace: r.Input.Management.Namespace, Name: cluster}
	return r.planInput(input, []explain.PlannedChange{{Ref: ref, Verb: explain.Deleted}})
}

// planInput compares what was read with another Input.
func (r *Reading) planInput(input *snapshot.Input, changes []explain.PlannedChange) (*explain.Planned, error) {
	translator := engine.New(engine.Options{})
	before := explain.New(translator.Translate(r.Input))
	return explain.Plan(before, explain.New(translator.Translate(input)), changes)
}

// succeed gives an object what an API server gives it: the status, age (in seconds) and generation of the
// one that it replaces. It reports whether both are the same.
func succeed(object, stored snapshot.APIObject, now time.Time) (same bool, err error) {
	if stored == nil {
		object.SetCreationTimestamp(metav1.NewTime(now).Rfc3339Copy())
		object.SetGeneration(1)
		return false, nil
	}
	object.SetCreationTimestamp(stored.GetCreationTimestamp())
	object.SetGeneration(stored.GetGeneration())
	object.SetUID(stored.GetUID())
	was, err := parts(stored)
	if err != nil {
		return false, err
	}
	is, err := parts(object)
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

// parts are the fields of an object.
func parts(o snapshot.APIObject) (map[string]any, error) {
	return runtime.DefaultUnstructuredConverter.ToUnstructured(o)
}

// annotationsOf leaves out what kubectl apply writes.
func annotationsOf(o snapshot.APIObject) map[string]string {
	out := map[string]string{}
	for key, value := range o.GetAnnotations() {
		if key != "kubectl.kubernetes.io/last-applied-configuration" {
			out[key] = value
		}
	}
	return out
}
