package registration

import (
	"context"
	"fmt"
	"slices"
	"sync"

	"golang.org/x/sync/errgroup"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"

	"github.com/meshctl/meshctl/engine/cluster"
	"github.com/meshctl/meshctl/engine/inventory"
	"github.com/meshctl/meshctl/engine/kube"
	"github.com/meshctl/meshctl/engine/snapshot"
)

// This file says in which order objects are restored. Of two policies in conflict the older one applies, and in the same second the one
// whose namespace and name come first (inventory.CompareAge). An API server gives each object the age that it has there, and no client can
// set another. So the objects of a kind that users write are created in the order of their age, one after the other, and wait for the next
// second where their names would decide otherwise. An annotation with the former age would be shorter, but whoever may write a policy
// could write it, too.

// restoredList are objects of one type and one stage.
type restoredList struct {
	resource
	kind snapshot.Kind
	// rivals says among which objects of the type age decides: they are created in this order; empty for those where it does not.
	rivals  string
	objects []*restoredObject
}

// restoredObject is one object of a Backup.
type restoredObject struct {
	// was is the object as it was in the Backup, and is as it was found; nil if it is not there.
	was, is *unstructured.Unstructured
	step    restoreStep
	done    bool
}

// restoreStep is what is to be done with an object.
type restoreStep uint8

const (
	// restoreKeep: it is there as in the Backup.
	restoreKeep restoreStep = iota
	restoreCreate
	// restoreFinish: a run before was interrupted after it had created the object.
	restoreFinish
	// restoreReplace: another one is there, or it would have the wrong age among the others.
	restoreReplace
)

// stagesOf puts the objects of a Backup in order: what others are in or refer to first, and the registrations last.
func stagesOf(b *Backup) [][]*restoredList {
	type key struct {
		stage int
		resource
		rivals string
	}
	lists := map[key]*restoredList{}
	out := make([][]*restoredList, stageCount)
	for _, o := range b.Objects {
		kind, _ := resourceOf(o)
		k := key{stageOf(o, b.Namespace), kind, rivalsOf(o)}
		l := lists[k]
		if l == nil {
			l = &restoredList{resource: kind, kind: refOf(o).Kind, rivals: k.rivals}
			lists[k], out[k.stage] = l, append(out[k.stage], l)
		}
		l.objects = append(l.objects, &restoredObject{was: o})
	}
	for _, l := range lists {
		slices.SortFunc(l.objects, func(a, b *restoredObject) int { return inventory.CompareAge(a.was, b.was) })
	}
	for _, stage := range out {
		slices.SortStableFunc(stage, func(a, b *restoredList) int { return int(a.kind) - int(b.kind) })
	}
	return out
}

// rivalsOf says among which objects of its type the age of an object decides; empty if it does not.
func rivalsOf(o *unstructured.Unstructured) string {
	kind := refOf(o).Kind
	secret, _, _ := unstructured.NestedString(o.Object, "type")
	switch {
	case kind == snapshot.Secret && secret == snapshot.RootSecretType:
		return "the newest root of a VirtualMesh signs"
	case kind == snapshot.KubernetesCluster: // of two registrations of one cluster, the older one counts
		return "cluster " + o.GetAnnotations()[cluster.UIDAnnotation]
	case isWrittenByUsers(o):
		return "the older one of two applies"
	}
	return ""
}

// stageCount is one more than the greatest stage of an object.
const stageCount = 6

// stageOf is when an object is written.
func stageOf(o *unstructured.Unstructured, namespace string) int {
	kind := refOf(o).Kind
	secret, _, _ := unstructured.NestedString(o.Object, "type")
	switch {
	case kind == snapshot.Namespace:
		return 0
	case isIdentity(o, namespace):
		return 1
	case kind == snapshot.KubernetesCluster:
		return 5
	case kind == snapshot.Secret && secret == cluster.SecretType:
		return 4
	case kind == snapshot.Secret, kind == snapshot.ConfigMap:
		if len(o.GetOwnerReferences()) > 0 {
			return 4
		}
		return 2
	}
	return 3 // whatever owns them, or they would be younger than those that have no owner
}

// isWrittenByUsers reports whether users write an object, as its list: of Destinations those outside of the clusters.
func isWrittenByUsers(o *unstructured.Unstructured) bool {
	kind := refOf(o).Kind
	if kind == snapshot.NoKind || kind.Info().Side != snapshot.ManagementSide || kind == snapshot.Secret {
		return false
	}
	if kind == snapshot.Destination {
		_, outside, _ := unstructured.NestedMap(o.Object, "spec", "externalService")
		return outside
	}
	return kind.Info().Access&snapshot.Write == 0
}

// lists are those of a kind.
func (r *restoration) lists(kind snapshot.Kind) (out []*restoredList) {
	for _, lists := range r.stages {
		for _, l := range lists {
			if l.kind == kind {
				out = append(out, l)
			}
		}
	}
	return out
}

// inspect finds out what is to be done with each object, and returns what is in the way, ascending.
func (r *restoration) inspect(ctx context.Context) (occupied []string, err error) {
	found := map[resource]map[types.NamespacedName]*unstructured.Unstructured{}
	for _, l := range slices.Concat(r.stages...) {
		if found[l.resource] == nil {
			if found[l.resource], err = r.there(ctx, l); err != nil {
				return nil, err
			}
		}
		occupied = append(occupied, r.steps(l, found[l.resource])...)
	}
	for _, k := range snapshot.Kinds(snapshot.ManagementSide, snapshot.Watch|snapshot.Write) {
		if found[kindResource(k)] == nil { // the backup has none
			if found[kindResource(k)], err = r.there(ctx, &restoredList{resource: kindResource(k), kind: k}); err != nil {
				return nil, err
			}
		}
	}
	for _, there := range found {
		for _, o := range there {
			if isWrittenByUsers(o) {
				occupied = append(occupied, describeObject(o)+" (the backup does not have it)")
			}
		}
	}
	slices.Sort(occupied)
	return occupied, nil
}

// steps decides about the objects of a list, and returns what is in the way. It takes them out of what there is of the type.
func (r *restoration) steps(l *restoredList, there map[types.NamespacedName]*unstructured.Unstructured) (occupied []string) {
	var last *restoredObject // the one before that stays as it is
	again := false
	for _, o := range l.objects {
		name := types.NamespacedName{Namespace: o.was.GetNamespace(), Name: o.was.GetName()}
		o.is = there[name]
		delete(there, name)
		var why string
		if o.step, why = stepOf(o, r.backup.id()); why == "" && o.is != nil && l.rivals != "" {
			switch {
			case again:
				why = "it is older than others that the backup has as older"
			case last != nil && inventory.CompareAge(last.is, o.is) >= 0:
				why = fmt.Sprintf("it is older than %s, which the backup has as older", describeObject(last.is))
			}
		}
		if why != "" {
			o.step = restoreReplace
			occupied = append(occupied, describeObject(o.was)+" ("+why+")")
		}
		r.expect(o)
		if again = again || o.step == restoreCreate || o.step == restoreReplace; !again {
			last = o
		}
	}
	return occupied
}

// expect notes the generation and the UID that an object will have.
func (r *restoration) expect(o *restoredObject) {
	of := generationsOf{was: o.was.GetGeneration(), is: 1}
	if o.is != nil && o.step != restoreReplace {
		of.is = o.is.GetGeneration()
		r.uids.add(o.was.GetUID(), o.is.GetUID())
	}
	r.generations[refOf(o.was)] = of
}

// there are the objects of the server of the type of a list, where a management plane has them.
func (r *restoration) there(ctx context.Context, l *restoredList) (map[types.NamespacedName]*unstructured.Unstructured, error) {
	if l.resource == secrets || l.resource == configMaps || l.resource == namespaces {
		return r.thereOf(ctx, l.resource)
	}
	out, namespace := map[types.NamespacedName]*unstructured.Unstructured{}, inOwnNamespace(l.kind, r.backup.Namespace)
	options := metav1.ListOptions{Limit: pageSize}
	for {
		list, err := r.server.client(l.resource, namespace).List(ctx, options)
		switch {
		case kube.IsAbsent(err):
			return out, nil
		case err != nil:
			return nil, fmt.Errorf("%s: listing %s: %w", r.server.label, l.Resource, err)
		}
		for i := range list.Items {
			o := &list.Items[i]
			out[types.NamespacedName{Namespace: o.GetNamespace(), Name: o.GetName()}] = o
		}
		if options.Continue = list.GetContinue(); options.Continue == "" {
			return out, nil
		}
	}
}

// thereOf are the objects of the Backup that the server has, of a type of which others have objects, too.
func (r *restoration) thereOf(ctx context.Context, of resource) (map[types.NamespacedName]*unstructured.Unstructured, error) {
	var mu sync.Mutex
	out := map[types.NamespacedName]*unstructured.Unstructured{}
	group, ctx := errgroup.WithContext(ctx)
	group.SetLimit(parallelRestores)
	for _, was := range r.backup.Objects {
		if kind, _ := resourceOf(was); kind != of {
			continue
		}
		group.Go(func() error {
			is, err := r.server.get(ctx, of, was.GetNamespace(), was.GetName())
			if is != nil {
				mu.Lock()
				defer mu.Unlock()
				out[types.NamespacedName{Namespace: was.GetNamespace(), Name: was.GetName()}] = is
			}
			return err
		})
	}
	return out, group.Wait() //nolint:wrapcheck // get names the object
}

// uidMap has the UIDs of objects by those that they had in a Backup.
type uidMap struct {
	mu sync.Mutex
	of map[types.UID]types.UID
}

func newUIDMap() *uidMap { return &uidMap{of: map[types.UID]types.UID{}} }

func (m *uidMap) add(was, is types.UID) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if was != "" {
		m.of[was] = is
	}
}

// owners are the owners of an object as they are now; those that are not restored are left out, or the object would go at once.
func (m *uidMap) owners(o *unstructured.Unstructured) (out []metav1.OwnerReference) {
	m.mu.Lock()
	defer m.mu.Unlock()
	for _, owner := range o.GetOwnerReferences() {
		if is, known := m.of[owner.UID]; known {
			owner.UID = is
			out = append(out, owner)
		}
	}
	return out
}
