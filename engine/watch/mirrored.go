package watch

import (
	"context"
	"fmt"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	utiljson "k8s.io/apimachinery/pkg/util/json"
	"k8s.io/client-go/tools/cache"

	"github.com/meshctl/meshctl/engine/kube"
	"github.com/meshctl/meshctl/engine/mirror"
	"github.com/meshctl/meshctl/engine/snapshot"
)

// mirrored is the feed of a kind that the management plane writes. All objects are in the mirror of a connection, and those that
// the engine reads are in the list.
type mirrored[T object] struct {
	*feed[T]
	conn *mirror.Connection
	// reads reports by the labels of an object whether the engine reads it.
	reads func(map[string]string) bool
}

// addMirrored makes the cache watch a kind that the management plane writes, for the list of the view that holds the type. Objects
// of the seed that have not changed keep their pointers.
func addMirrored[T object, V any, L interface {
	*V
	snapshot.ObjectLists
}](c *clusterCache[V], seed L, lister *kube.Lister, reads func(map[string]string) bool, strip func(T) bool) error {
	return addFeed(c, seed, kindOf[T](), lister, strip, func(f *feed[T]) feeder { return newMirrored(c, f, reads) })
}

// addOfMesh makes the cache watch a kind that users write for a mesh. If the management plane writes it, too, reads says by the labels
// of an object whether it is a user's.
func addOfMesh(c *clusterCache[snapshot.Cluster], seed *snapshot.Cluster, kind snapshot.Kind, reads func(map[string]string) bool, strip func(snapshot.APIObject)) error {
	return addFeed(c, seed, kind, &kube.Lister{}, func(o snapshot.APIObject) bool { strip(o); return true }, func(f *feed[snapshot.APIObject]) feeder {
		if kind.Info().Access&snapshot.Write == 0 {
			return f
		}
		return newMirrored(c, f, reads)
	})
}

// addMirror is addMirrored for a kind that the engine does not read.
func addMirror[V any](c *clusterCache[V], kind snapshot.Kind) {
	lister := &kube.Lister{Client: c.client, Kind: kind, Silent: func() { c.onSilence(kind) }}
	f := newFeed(lister, nil, func(*mirror.Observed) bool { return false }, c.onChange, func() { signal(c.failed) })
	c.feeds = append(c.feeds, newMirrored(c, f, func(map[string]string) bool { return false }))
}

func newMirrored[T object, V any](c *clusterCache[V], f *feed[T], reads func(map[string]string) bool) *mirrored[T] {
	m := &mirrored[T]{feed: f, conn: c.conn, reads: reads}
	f.lister.Page, f.lister.Done = m.page, m.done
	// What may be written and not listed is a matter of this kind, and not of the cluster.
	f.mayBeDenied = f.mayBeDenied || c.conn.Cluster != ""
	f.mayBeAbsent = f.mayBeAbsent || c.conn.Cluster != "" && f.lister.Kind.Info().Access&snapshot.InClusters != 0
	return m
}

// done records the result of a request: in the mirror first, so that who is told that the cluster is read finds it there.
func (m *mirrored[T]) done(err error) {
	m.conn.Done(m.kind(), err)
	m.feed.done(err)
}

// brokenObjects implements feeder: it also says that what exists is not known.
func (m *mirrored[T]) brokenObjects(cluster string) []snapshot.Failure {
	out := m.feed.brokenObjects(cluster)
	info := m.kind().Info()
	if !m.isDenied() || info.Later || info.Access&snapshot.InClusters != 0 { // those are rarely asked for; see unreadPolicies
		return out
	}
	return append(out, snapshot.Failure{
		Ref: snapshot.Ref{Kind: snapshot.KubernetesCluster, Namespace: m.conn.Plane.Namespace, Name: m.conn.Cluster},
		Reason: snapshot.Reason{
			Code: snapshot.PermissionsMissing,
			What: fmt.Sprintf("meshctl's account on the cluster is not allowed to list %s.%s: what users write of them is not seen, and none of ours is written or deleted", info.Resource, info.Group),
			Hint: "register the cluster again",
		},
	})
}

// run implements feeder.
func (m *mirrored[T]) run(ctx context.Context, silence time.Duration) {
	m.lister.Silence = silence
	m.lister.Run(ctx, m)
}

// read implements feeder.
func (m *mirrored[T]) read(ctx context.Context) error { return readOnce(ctx, m.lister, m) }

// page replaces a list by one of whatever its objects become.
func (m *mirrored[T]) page(list runtime.Object) (runtime.Object, error) {
	return m.pageOf(list, func(item runtime.Object) runtime.Object {
		if o, ok := item.(*mirror.Observed); ok {
			m.decode(o)
		}
		return item
	})
}

// decode makes of an object what the engine reads of it, if it does.
func (m *mirrored[T]) decode(o *mirror.Observed) {
	o.Read(func(raw []byte) runtime.Object {
		if !m.reads(o.Labels) {
			return nil
		}
		var typed runtime.Object
		err := kube.Catch(func() {
			object := m.kind().New()
			if err := utiljson.Unmarshal(raw, object); err != nil {
				typed = &brokenObject{ObjectMeta: metav1.ObjectMeta{Namespace: o.Namespace, Name: o.Name}, err: err}
				return
			}
			typed, _ = m.stripped(object).(runtime.Object)
		})
		if err != nil {
			return &brokenObject{ObjectMeta: metav1.ObjectMeta{Namespace: o.Namespace, Name: o.Name}, err: err}
		}
		return typed
	})
}

// eventOf is what the list learns of an object.
func (m *mirrored[T]) eventOf(o *mirror.Observed) (event[T], error) {
	m.decode(o)
	if o.Typed == nil {
		return event[T]{key: keyOf(o)}, nil
	}
	return m.store.eventOf(o.Typed)
}

func (m *mirrored[T]) enter(item any, deleted bool) error {
	o, ok := item.(*mirror.Observed)
	if !ok {
		return fmt.Errorf("object of type %T where a decoded %s was expected", item, m.kind())
	}
	e := event[T]{key: keyOf(o)}
	if !deleted {
		var err error
		if e, err = m.eventOf(o); err != nil {
			return err
		}
		o.Typed = nil
	}
	m.conn.Enter(m.kind(), o, deleted)
	m.handle(e)
	return nil
}

// Add implements cache.ReflectorStore.
func (m *mirrored[T]) Add(item any) error { return m.enter(item, false) }

// Update implements cache.ReflectorStore.
func (m *mirrored[T]) Update(item any) error { return m.enter(item, false) }

// Delete implements cache.ReflectorStore.
func (m *mirrored[T]) Delete(item any) error { return m.enter(item, true) }

// Replace implements cache.ReflectorStore: items are all objects of the kind.
func (m *mirrored[T]) Replace(items []any, version string) error {
	var listed []any
	all := make([]*mirror.Observed, 0, len(items))
	for _, item := range items {
		o, ok := item.(*mirror.Observed)
		if !ok {
			return fmt.Errorf("object of type %T where a decoded %s was expected", item, m.kind())
		}
		if m.decode(o); o.Typed != nil {
			listed = append(listed, o.Typed)
		}
		all = append(all, o)
	}
	m.conn.Replace(m.kind(), all, version)
	return m.store.Replace(listed, version)
}

// Transformer implements cache.TransformingStore: objects are decoded as they are read from a stream, before a whole list of them
// is in memory.
func (m *mirrored[T]) Transformer() cache.TransformFunc {
	return func(item any) (any, error) {
		if o, ok := item.(*mirror.Observed); ok {
			m.decode(o)
		}
		return item, nil
	}
}

// readOnce fills a store without watching.
func readOnce(ctx context.Context, lister *kube.Lister, store cache.ReflectorStore) error {
	list, err := lister.ListWithContext(ctx, metav1.ListOptions{})
	if err != nil {
		return err
	}
	var items []any
	if err := meta.EachListItem(list, func(item runtime.Object) error {
		items = append(items, item)
		return nil
	}); err != nil {
		return fmt.Errorf("list of %s: %w", lister.Kind, err)
	}
	page, err := meta.ListAccessor(list)
	if err != nil {
		return fmt.Errorf("list of %s: %w", lister.Kind, err)
	}
	return store.Replace(items, page.GetResourceVersion())
}
