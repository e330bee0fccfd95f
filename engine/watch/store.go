package watch

import (
	"cmp"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"sync"

	"google.golang.org/protobuf/proto"
	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/tools/cache"

	"github.com/meshctl/meshctl/engine/kube"
)

// object is a pointer to an API type.
type object interface {
	comparable
	metav1.Object
	runtime.Object
}

// collection holds the objects of one kind in one cluster, ascending by
// namespace and name. It is the reflector's store. Readers get slices that
// never change: what arrives is kept aside until the next reader asks.
type collection[T object] struct {
	// strip removes in place what the engine does not read and reports whether
	// the object matters at all. It must be idempotent.
	strip func(T) bool
	// changed is called, without locks held, after each change of substance.
	changed func()
	// rejected is called, with the lock held, for an object that cannot be
	// processed: once for each reason.
	rejected func(key, error)

	mu sync.Mutex
	// sorted is what readers have; pending is what differs from it, the zero T
	// standing for a deletion.
	sorted  []T
	pending map[key]T
	filled  bool
	// broken says of objects that exist and cannot be processed why. Readers
	// have them as they were before.
	broken map[key]string
}

// key is an object's place in its collection.
type key struct{ namespace, name string }

func (k key) compare(o key) int {
	return cmp.Or(strings.Compare(k.namespace, o.namespace), strings.Compare(k.name, o.name))
}

func keyOf(o metav1.Object) key { return key{o.GetNamespace(), o.GetName()} }

// newCollection makes an unfilled collection. Objects equal to ones in seed
// will be represented by those, so that pointers survive a reconnection.
func newCollection[T object](seed []T, strip func(T) bool, changed func()) *collection[T] {
	return &collection[T]{
		strip: strip, changed: changed, rejected: func(key, error) {},
		sorted: seed, pending: map[key]T{}, broken: map[key]string{},
	}
}

// list returns the current objects: the same slice until something changes.
func (c *collection[T]) list() []T {
	c.mu.Lock()
	defer c.mu.Unlock()
	if len(c.pending) > 0 {
		c.sorted = merge(c.sorted, c.pending)
		c.pending = map[key]T{}
	}
	return c.sorted
}

// merge returns a new slice: base with the changes carried out.
func merge[T object](base []T, changes map[key]T) []T {
	keys := make([]key, 0, len(changes))
	for k := range changes {
		keys = append(keys, k)
	}
	slices.SortFunc(keys, key.compare)
	var gone T
	out := make([]T, 0, len(base)+len(keys))
	for _, k := range keys {
		at, found := find(base, k)
		out = append(out, base[:at]...)
		if found {
			at++
		}
		base = base[at:]
		if object := changes[k]; object != gone {
			out = append(out, object)
		}
	}
	return slices.Clip(append(out, base...))
}

// find is the place of k in a sorted list, and whether it is there.
func find[T object](sorted []T, k key) (int, bool) {
	return slices.BinarySearchFunc(sorted, k, func(o T, k key) int { return keyOf(o).compare(k) })
}

// isFilled reports whether a complete list has arrived.
func (c *collection[T]) isFilled() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.filled
}

// latest returns what readers have of an object, and what they will have; the
// zero object stands for none.
func (c *collection[T]) latest(k key) (base, before T) {
	if at, found := find(c.sorted, k); found {
		base, before = c.sorted[at], c.sorted[at]
	}
	if waiting, found := c.pending[k]; found {
		before = waiting
	}
	return base, before
}

// set carries out one change under the lock and reports whether it is one. The
// zero object stands for a deletion.
func (c *collection[T]) set(k key, object T) bool {
	var gone T
	base, before := c.latest(k)
	if before != gone && object != gone {
		carry(before, object)
	}
	if same(before, object) {
		return false
	}
	if same(base, object) {
		delete(c.pending, k)
	} else {
		c.pending[k] = object
	}
	return true
}

// same compares stripped objects; two deletions are the same.
func same[T object](a, b T) bool {
	var gone T
	if a == gone || b == gone {
		return a == b
	}
	return equal(a, b)
}

// equal compares two objects of one API type field by field: their metadata, and
// their spec and status. Those of Istio's kinds are protobuf messages, which only
// proto.Equal can compare: they have unexported fields, at which DeepEqual panics.
func equal(a, b any) bool {
	x, y := reflect.ValueOf(a).Elem(), reflect.ValueOf(b).Elem()
	for i := range x.NumField() {
		was, now := x.Field(i).Addr().Interface(), y.Field(i).Addr().Interface()
		switch was := was.(type) {
		case proto.Message:
			if !proto.Equal(was, now.(proto.Message)) {
				return false
			}
		default:
			if !equality.Semantic.DeepEqual(was, now) {
				return false
			}
		}
	}
	return true
}

// arrival is what an API server said of one object.
type arrival[T object] struct {
	key key
	// object is stripped; the zero object stands for one that is gone or does
	// not matter.
	object T
	// err is why the object cannot be processed.
	err error
}

// receive strips an object. It returns an error for one of another type.
func (c *collection[T]) receive(item any) (arrival[T], error) {
	a, object, err := c.identify(item)
	if err == nil && a.err == nil {
		a.err = kube.Catch(func() {
			if c.strip(object) {
				a.object = object
			}
		})
	}
	return a, err
}

// identify tells which object an item is.
func (c *collection[T]) identify(item any) (arrival[T], T, error) {
	var none T
	switch item := item.(type) {
	case T:
		return arrival[T]{key: keyOf(item)}, item, nil
	case *brokenObject:
		return arrival[T]{key: keyOf(item), err: item.err}, none, nil
	}
	return arrival[T]{}, none, fmt.Errorf("object of type %T where %T was expected", item, none)
}

// take stores an arrival under the lock and reports whether something changed.
func (c *collection[T]) take(a arrival[T]) (changed bool) {
	if a.err == nil {
		a.err = kube.Catch(func() { changed = c.set(a.key, a.object) })
	}
	return c.note(a.key, a.err) || changed
}

// note records whether an object could be processed, and reports whether that
// is news.
func (c *collection[T]) note(k key, err error) bool {
	was, broken := c.broken[k]
	switch {
	case err == nil:
		delete(c.broken, k)
		return broken
	case broken && was == err.Error():
		return false
	}
	c.broken[k] = err.Error()
	c.rejected(k, err)
	return true
}

// store takes one arrival and reports a change.
func (c *collection[T]) store(a arrival[T]) {
	c.mu.Lock()
	changed := c.take(a)
	c.mu.Unlock()
	if changed {
		c.changed()
	}
}

// put stores or, if it no longer matters, forgets an object.
func (c *collection[T]) put(item any) error {
	a, err := c.receive(item)
	if err != nil {
		return err
	}
	c.store(a)
	return nil
}

// Add implements cache.ReflectorStore.
func (c *collection[T]) Add(item any) error { return c.put(item) }

// Update implements cache.ReflectorStore.
func (c *collection[T]) Update(item any) error { return c.put(item) }

// Delete implements cache.ReflectorStore.
func (c *collection[T]) Delete(item any) error {
	a, _, err := c.identify(item)
	if err != nil {
		return err
	}
	c.store(arrival[T]{key: a.key})
	return nil
}

// Replace implements cache.ReflectorStore: items are all there is.
func (c *collection[T]) Replace(items []any, _ string) error {
	next := make(map[key]arrival[T], len(items))
	for _, item := range items {
		a, err := c.receive(item)
		if err != nil {
			return err
		}
		next[a.key] = a
	}
	c.mu.Lock()
	changed := !c.filled
	c.filled = true
	for _, known := range [][]key{keysOf(c.sorted), keysIn(c.pending), keysIn(c.broken)} {
		for _, k := range known {
			if _, still := next[k]; !still {
				changed = c.take(arrival[T]{key: k}) || changed
			}
		}
	}
	for _, a := range next {
		changed = c.take(a) || changed
	}
	c.mu.Unlock()
	if changed {
		c.changed()
	}
	return nil
}

func keysOf[T object](objects []T) []key {
	keys := make([]key, len(objects))
	for i, o := range objects {
		keys[i] = keyOf(o)
	}
	return keys
}

func keysIn[V any](objects map[key]V) []key {
	keys := make([]key, 0, len(objects))
	for k := range objects {
		keys = append(keys, k)
	}
	return keys
}

// Resync implements cache.ReflectorStore; there is nothing to do.
func (c *collection[T]) Resync() error { return nil }

// Transformer implements cache.TransformingStore: objects are stripped as they
// are read from a stream, before a whole list of them is in memory.
func (c *collection[T]) Transformer() cache.TransformFunc {
	return func(item any) (any, error) { return c.stripped(item), nil }
}

// stripped is an object without what the engine does not read, or what stands
// for it if it cannot be processed.
func (c *collection[T]) stripped(item any) any {
	object, ok := item.(T)
	if !ok {
		return item
	}
	if err := kube.Catch(func() { c.strip(object) }); err != nil {
		return &brokenObject{ObjectMeta: metav1.ObjectMeta{Namespace: object.GetNamespace(), Name: object.GetName()}, err: err}
	}
	return item
}
