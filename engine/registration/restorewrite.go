package registration

import (
	"context"
	"fmt"
	"reflect"
	"time"

	"golang.org/x/sync/errgroup"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/dynamic"

	"github.com/meshctl/meshctl/engine/inventory"
	"github.com/meshctl/meshctl/engine/kube"
)

// stepOf is what is to be done with an object, and why it cannot be done without force.
func stepOf(o *restoredObject, backup string) (step restoreStep, why string) {
	if o.is == nil {
		return restoreCreate, ""
	}
	switch mark, restoring := o.is.GetAnnotations()[RestoringAnnotation]; {
	case o.is.GetDeletionTimestamp() != nil:
		return restoreReplace, "it is being deleted"
	case o.was.GetKind() == namespaces.kind:
		return restoreKeep, ""
	case restoring && mark == backup:
		return restoreFinish, ""
	case restoring:
		return restoreReplace, "it was restored from another backup, and not completely"
	case !reflect.DeepEqual(written(o.was), written(o.is)):
		return restoreReplace, "it differs"
	}
	return restoreKeep, ""
}

// written is what somebody wrote of an object, without what API servers and serve note in it.
func written(o *unstructured.Unstructured) map[string]any {
	out := make(map[string]any, len(o.Object))
	for key, value := range o.Object {
		if key != "status" && key != "metadata" {
			out[key] = value
		}
	}
	out["metadata"] = []any{nonNil(o.GetLabels()), nonNil(o.GetAnnotations())}
	return out
}

func nonNil(m map[string]string) map[string]string {
	if m == nil {
		return map[string]string{}
	}
	return m
}

// write writes the objects of a list that are not there.
func (l *restoredList) write(ctx context.Context, r *restoration) error {
	if l.rivals == "" {
		group, ctx := errgroup.WithContext(ctx)
		group.SetLimit(parallelRestores)
		for _, o := range l.objects {
			group.Go(func() error { _, err := r.restore(ctx, l, o, nil); return err })
		}
		return group.Wait() //nolint:wrapcheck // restore names the object
	}
	var last *unstructured.Unstructured
	for _, o := range l.objects {
		is, err := r.restore(ctx, l, o, last)
		if err != nil {
			return err
		}
		last = is
	}
	return nil
}

// restore makes an object as it was in the Backup, younger than another one, which may be nil.
func (r *restoration) restore(ctx context.Context, l *restoredList, o *restoredObject, older *unstructured.Unstructured) (*unstructured.Unstructured, error) {
	client, is := r.server.client(l.resource, o.was.GetNamespace()), o.is
	var err error
	switch o.step {
	case restoreKeep:
		return is, nil
	case restoreReplace:
		r.Progress("Replacing " + describeObject(o.was))
		if err = r.remove(ctx, client, is); err == nil {
			is, err = r.create(ctx, client, o.was, older)
		}
	case restoreCreate:
		is, err = r.create(ctx, client, o.was, older)
	}
	if err == nil {
		r.uids.add(o.was.GetUID(), is.GetUID())
		err = r.finish(ctx, client, o.was, is)
	}
	if err != nil {
		return nil, fmt.Errorf("%s: restoring: %w", describeObject(o.was), err)
	}
	o.done = true
	return is, nil
}

// tries bounds how often an object is created whose age is wrong: API servers whose clocks differ by more than this, in seconds, cannot
// be restored to.
const tries = 10

// create creates an object, marked as not complete.
func (r *restoration) create(ctx context.Context, client dynamic.ResourceInterface, was, older *unstructured.Unstructured) (*unstructured.Unstructured, error) {
	marks := map[string]string{RestoringAnnotation: r.backup.id()}
	for key, value := range was.GetAnnotations() {
		marks[key] = value
	}
	wanted := &unstructured.Unstructured{Object: map[string]any{}}
	for key, value := range was.Object {
		if key != "status" && key != "metadata" {
			wanted.Object[key] = value
		}
	}
	wanted.SetNamespace(was.GetNamespace())
	wanted.SetName(was.GetName())
	wanted.SetLabels(was.GetLabels())
	wanted.SetAnnotations(marks)
	wanted.SetFinalizers(was.GetFinalizers())
	wanted.SetOwnerReferences(r.uids.owners(was))
	if older != nil && isBefore(was, older) {
		if err := nextSecond(ctx, older); err != nil {
			return nil, err
		}
	}
	for n := 1; ; n++ {
		is, err := client.Create(ctx, wanted, metav1.CreateOptions{FieldManager: restoreManager})
		if err != nil || older == nil || inventory.CompareAge(older, is) < 0 {
			return is, err //nolint:wrapcheck // restore names the object
		}
		if err := r.remove(ctx, client, is); err != nil {
			return nil, err
		}
		if n == tries {
			return nil, fmt.Errorf("the API server gives it an age of %s, and %s has %s, which is to be older; correct the clocks of the API servers",
				is.GetCreationTimestamp().UTC().Format(time.RFC3339), describeObject(older), older.GetCreationTimestamp().UTC().Format(time.RFC3339))
		}
		if err := pause(ctx, time.Second); err != nil {
			return nil, err
		}
	}
}

// isBefore reports whether of two objects of the same second the first one would count as older.
func isBefore(a, b *unstructured.Unstructured) bool {
	return a.GetNamespace() < b.GetNamespace() || a.GetNamespace() == b.GetNamespace() && a.GetName() < b.GetName()
}

// nextSecond waits until the second is over in which an object was created, by the clock of this machine: a wrong clock costs a try.
func nextSecond(ctx context.Context, older *unstructured.Unstructured) error {
	left := time.Until(older.GetCreationTimestamp().Add(time.Second))
	return pause(ctx, min(max(left, 0), time.Second))
}

func pause(ctx context.Context, d time.Duration) error {
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-time.After(d):
		return nil
	}
}

// finish gives an object the status, the owners of fields and the annotations that it had.
func (r *restoration) finish(ctx context.Context, client dynamic.ResourceInterface, was, is *unstructured.Unstructured) error {
	options := metav1.UpdateOptions{FieldManager: restoreManager}
	if status := r.generations.status(was); status != nil {
		is = is.DeepCopy()
		is.Object["status"] = status
		var err error
		if is, err = client.UpdateStatus(ctx, is, options); err != nil {
			return fmt.Errorf("its status: %w", err)
		}
	}
	is = is.DeepCopy()
	is.SetAnnotations(was.GetAnnotations())
	// Else the fields would be those of the restoration, and nobody who applies manifests could leave out one of them.
	is.SetManagedFields(was.GetManagedFields())
	_, err := client.Update(ctx, is, options)
	return err //nolint:wrapcheck // restore names the object
}

// removeWait bounds the wait until an object is gone.
const removeWait = 30 * time.Second

// remove deletes an object, and waits until it is gone.
func (r *restoration) remove(ctx context.Context, client dynamic.ResourceInterface, is *unstructured.Unstructured) error {
	uid := is.GetUID()
	err := client.Delete(ctx, is.GetName(), metav1.DeleteOptions{Preconditions: &metav1.Preconditions{UID: &uid}})
	for began := time.Now(); ; {
		if err != nil && !apierrors.IsNotFound(err) {
			return fmt.Errorf("deleting what is there: %w", err)
		}
		found, getting := client.Get(ctx, is.GetName(), metav1.GetOptions{})
		switch {
		case kube.IsAbsent(getting), getting == nil && found.GetUID() != uid:
			return nil
		case getting != nil:
			return fmt.Errorf("deleting what is there: %w", getting)
		case time.Since(began) > removeWait:
			return fmt.Errorf("what is there does not go: somebody has to remove its finalizers %q first", found.GetFinalizers())
		}
		if err := pause(ctx, collectPause); err != nil {
			return err
		}
	}
}

// changes count what was done with the objects of a list, or is to be done.
func (l *restoredList) changes(planned bool) []Change {
	counts := map[Action]int{}
	for _, o := range l.objects {
		action := map[restoreStep]Action{restoreKeep: Unchanged, restoreCreate: Created, restoreFinish: Updated, restoreReplace: Updated}[o.step]
		if planned || o.done || o.step == restoreKeep {
			counts[action]++
		}
	}
	var out []Change
	for _, action := range []Action{Created, Updated, Unchanged} {
		if counts[action] > 0 {
			out = append(out, Change{Action: action, Server: managementSide, Kind: l.resource.kind, Count: counts[action]})
		}
	}
	return out
}
