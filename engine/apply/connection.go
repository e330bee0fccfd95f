package apply

import (
	"context"
	"sync"
	"time"

	"github.com/meshctl/meshctl/engine/kube"
	"github.com/meshctl/meshctl/engine/snapshot"
)

// connection is a client of a cluster with one credential, its watches, and the
// mirror that they keep. The cluster's lock guards its fields.
type connection struct {
	*kube.Client
	mirror
	ctx    context.Context
	cancel context.CancelFunc
	group  sync.WaitGroup

	// suspect: a request got no answer; nothing is written until a probe does.
	suspect bool
	// hurry receives a value when a probe that failed may succeed now.
	hurry chan struct{}
	// faults counts, in a row, writes that got no answer about the object from a server
	// that answers probes.
	faults int
	// faulted is when a write failed like that last.
	faulted time.Time
	// problem is why it cannot replace another one; empty if it can.
	problem string
}

// listener receives what the watches of a connection see.
type listener interface {
	changed(c *connection, of id, l live, deleted bool)
	replaced(c *connection, kind snapshot.Kind, list map[id]live, version uint64)
	reported(c *connection, kind snapshot.Kind, err error)
	incomparable(of id, err error)
}

// watch watches a kind until ctx is done. Errors are passed to the listener, which
// decides what to log.
func (c *connection) watch(ctx context.Context, kind snapshot.Kind, store *store) {
	lister := &kube.Lister{Client: c.Client, Kind: kind, Done: func(err error) { store.to.reported(c, kind, err) }}
	lister.Run(ctx, store)
}

// close ends the watches and waits for them.
func (c *connection) close() {
	c.cancel()
	c.group.Wait()
	c.CloseIdle()
}

// store passes what a reflector sees to the listener.
type store struct {
	connection *connection
	kind       snapshot.Kind
	cluster    string
	plane      snapshot.Plane
	to         listener
}

// Add implements cache.ReflectorStore.
func (s *store) Add(object any) error { return s.event(object, false) }

// Update implements cache.ReflectorStore.
func (s *store) Update(object any) error { return s.event(object, false) }

// Delete implements cache.ReflectorStore.
func (s *store) Delete(object any) error { return s.event(object, true) }

// Resync implements cache.ReflectorStore.
func (s *store) Resync() error { return nil }

func (s *store) event(object any, deleted bool) error {
	o := object.(*observed)
	s.to.changed(s.connection, s.id(o), s.live(o), deleted)
	return nil
}

// Replace implements cache.ReflectorStore.
func (s *store) Replace(objects []any, resourceVersion string) error {
	list := make(map[id]live, len(objects))
	for _, object := range objects {
		o := object.(*observed)
		list[s.id(o)] = s.live(o)
	}
	s.to.replaced(s.connection, s.kind, list, version(resourceVersion))
	return nil
}

func (s *store) live(o *observed) live {
	if o.err != nil {
		s.to.incomparable(s.id(o), o.err)
	}
	return o.live(s.kind, s.cluster, s.plane)
}

func (s *store) id(o *observed) id {
	return id{kind: s.kind, namespace: o.Namespace, name: o.Name}
}
