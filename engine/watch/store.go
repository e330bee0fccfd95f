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

	mu sync.Mutex
	// sorted is what readers have; pending is what differs from it, the zero T
	// standing for a deletion.
	sorted  []T
	pending map[key]T
	filled  bool
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
	return &collection[T]{strip: strip, changed: changed, sorted: seed, pending: map[key]T{}}
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

// set carries out one change under the lock and reports whether it is one. The
// zero object stands for a deletion.
func (c *collection[T]) set(k key, object T) bool {
	var gone T
	before := gone
	base := gone
	if at, found := find(c.sorted, k); found {
		base, before = c.sorted[at], c.sorted[at]
	}
	if waiting, found := c.pending[k]; found {
		before = waiting
	}
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

// put stores or, if it no longer matters, forgets an object.
func (c *collection[T]) put(item any) error {
	object, err := c.typed(item)
	if err != nil {
		return err
	}
	k := keyOf(object)
	if !c.strip(object) {
		var gone T
		object = gone
	}
	c.mu.Lock()
	changed := c.set(k, object)
	c.mu.Unlock()
	if changed {
		c.changed()
	}
	return nil
}

func (c *collection[T]) typed(item any) (T, error) {
	object, ok := item.(T)
	if !ok {
		return object, fmt.Errorf("object of type %T where %T was expected", item, object)
	}
	return object, nil
}

// Add implements cache.ReflectorStore.
func (c *collection[T]) Add(item any) error { return c.put(item) }

// Update implements cache.ReflectorStore.
func (c *collection[T]) Update(item any) error { return c.put(item) }

// Delete implements cache.ReflectorStore.
func (c *collection[T]) Delete(item any) error {
	object, err := c.typed(item)
	if err != nil {
		return err
	}
	var gone T
	c.mu.Lock()
	changed := c.set(keyOf(object), gone)
	c.mu.Unlock()
	if changed {
		c.changed()
	}
	return nil
}

// Replace implements cache.ReflectorStore: items are all there is.
func (c *collection[T]) Replace(items []any, _ string) error {
	var gone T
	next := make(map[key]T, len(items))
	for _, item := range items {
		object, err := c.typed(item)
		if err != nil {
			return err
		}
		if c.strip(object) {
			next[keyOf(object)] = object
		}
	}
	c.mu.Lock()
	changed := !c.filled
	c.filled = true
	for _, known := range [][]key{keysOf(c.sorted), keysIn(c.pending)} {
		for _, k := range known {
			if _, still := next[k]; !still {
				changed = c.set(k, gone) || changed
			}
		}
	}
	for k, object := range next {
		changed = c.set(k, object) || changed
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

func keysIn[T object](objects map[key]T) []key {
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
	return func(item any) (any, error) {
		object, ok := item.(T)
		if ok {
			c.strip(object)
		}
		return item, nil
	}
}
