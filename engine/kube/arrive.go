package kube

import (
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/tools/cache"
)

// Hold counts memory that is kept of what the server sent, in bytes; negative if it is kept no longer.
// Where that is more than its Budget allows, requests fail.
func (c *Client) Hold(bytes int64) { c.meter.hold(bytes) }

// Check returns a TooMuchError while the pause of the Budget lasts.
func (c *Client) Check() error {
	if c.meter == nil {
		return nil
	}
	return c.meter.check()
}

// metered reports whether the Client has a Budget.
func (l *Lister) metered() bool { return l.Client != nil && l.Client.meter != nil }

// arrive counts an object of a list that is not complete yet.
func (l *Lister) arrive(object any) {
	if l.metered() {
		size := SizeOf(object)
		l.arrived.Add(size)
		l.Client.meter.arrive(size)
	}
}

// arriveAll is arrive for the objects of a page.
func (l *Lister) arriveAll(page runtime.Object) {
	if l.metered() {
		_ = meta.EachListItem(page, func(item runtime.Object) error { // what is no list has no items
			l.arrive(item)
			return nil
		})
	}
}

// arrivals begins a list, or ends it: who stores it counts what is kept.
func (l *Lister) arrivals() {
	if l.metered() {
		l.Client.meter.arrive(-l.arrived.Swap(0))
	}
}

// arriving counts what a reflector passes to its store.
type arriving struct {
	cache.ReflectorStore
	lister *Lister
}

// Add implements cache.ReflectorStore.
func (s arriving) Add(object any) error {
	s.lister.event()
	return s.ReflectorStore.Add(object)
}

// Update implements cache.ReflectorStore.
func (s arriving) Update(object any) error {
	s.lister.event()
	return s.ReflectorStore.Update(object)
}

// Delete implements cache.ReflectorStore.
func (s arriving) Delete(object any) error {
	s.lister.event()
	return s.ReflectorStore.Delete(object)
}

// Replace implements cache.ReflectorStore.
func (s arriving) Replace(objects []any, version string) error {
	s.lister.arrivals()
	return s.ReflectorStore.Replace(objects, version)
}

// Transformer implements cache.TransformingStore: it gets the objects of a list that is a stream.
func (s arriving) Transformer() cache.TransformFunc {
	transform := func(object any) (any, error) { return object, nil }
	if store, ok := s.ReflectorStore.(cache.TransformingStore); ok {
		transform = store.Transformer()
	}
	return func(object any) (any, error) {
		object, err := transform(object)
		s.lister.arrive(object)
		return object, err
	}
}

// event counts an event of a watch.
func (l *Lister) event() {
	if l.metered() {
		l.Client.meter.event()
	}
}
