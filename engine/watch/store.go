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

// object is a pointer to an API type. It is not comparable on purpose: all pointers share one copy of the generic code then, which
// is a megabyte of the binary.
type object interface {
	metav1.Object
	runtime.Object
}

// isNone reports whether an object is the nil pointer, which stands for none.
func isNone[T object](o T) bool {
	var none T
	return any(o) == any(none)
}

// store holds the objects of one kind in one cluster, ascending by
// namespace and name. It is a cache.ReflectorStore. Readers get slices that
// never change: events are kept aside until the next reader asks.
type store[T object] struct {
	// strip removes in place what the engine does not read and reports whether
	// the object matters at all. It must be idempotent.
	strip func(T) bool
	// changed is called, without locks held, after each change of what is kept.
	changed func()
	// rejected is called, with the lock held, for an object that cannot be
	// processed: once for each reason.
	rejected func(key, error)

	// hold counts the memory of what is kept, in bytes.
	hold func(int64)

	mu sync.Mutex
	// sorted is what readers have; pending is what differs from it, the zero T
	// standing for a deletion.
	sorted  []T
	pending map[key]T
	filled  bool
	// grown is what hold has not counted yet: all that changes together counts together.
	grown int64
	// broken are the objects that exist and cannot be processed, with the reason.
	// Readers have them as they were before.
	broken map[key]string
}

// key identifies an object in its store.
type key struct{ namespace, name string }

func (k key) compare(o key) int {
	return cmp.Or(strings.Compare(k.namespace, o.namespace), strings.Compare(k.name, o.name))
}

func keyOf(o metav1.Object) key { return key{o.GetNamespace(), o.GetName()} }

// newStore makes an unfilled store. Objects equal to ones in seed are
// represented by those, so that pointers survive a reconnection.
func newStore[T object](seed []T, strip func(T) bool, changed func()) *store[T] {
	return &store[T]{
		strip: strip, changed: changed, rejected: func(key, error) {}, hold: func(int64) {},
		sorted: seed, pending: map[key]T{}, broken: map[key]string{},
	}
}

// list returns the current objects: the same slice until something changes.
func (s *store[T]) list() []T {
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.pending) > 0 {
		s.sorted = merge(s.sorted, s.pending)
		s.pending = map[key]T{}
	}
	return s.sorted
}

// merge returns a new slice: base with the changes applied.
func merge[T object](base []T, changes map[key]T) []T {
	keys := make([]key, 0, len(changes))
	for k := range changes {
		keys = append(keys, k)
	}
	slices.SortFunc(keys, key.compare)
	out := make([]T, 0, len(base)+len(keys))
	for _, k := range keys {
		at, found := find(base, k)
		out = append(out, base[:at]...)
		if found {
			at++
		}
		base = base[at:]
		if object := changes[k]; !isNone(object) {
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
func (s *store[T]) isFilled() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.filled
}

// latest returns what readers have of an object, and what they will have; the
// zero object stands for none.
func (s *store[T]) latest(k key) (base, before T) {
	if at, found := find(s.sorted, k); found {
		base, before = s.sorted[at], s.sorted[at]
	}
	if waiting, found := s.pending[k]; found {
		before = waiting
	}
	return base, before
}

// set stores an object under the lock and reports whether that changed anything.
// The zero object stands for a deletion.
func (s *store[T]) set(k key, object T) bool {
	base, before := s.latest(k)
	if !isNone(before) && !isNone(object) {
		reuseWritten(before, object)
	}
	if same(before, object) {
		return false
	}
	s.grown += sizeOf(object) - sizeOf(before)
	if same(base, object) {
		delete(s.pending, k)
	} else {
		s.pending[k] = object
	}
	return true
}

// count counts, under the lock, how much more is kept than when it was called before.
func (s *store[T]) count() {
	s.hold(s.grown)
	s.grown = 0
}

// sizeOf is the memory of an object in the store, in bytes; 0 for the zero object.
func sizeOf[T object](o T) int64 {
	if isNone(o) {
		return 0
	}
	return kube.SizeOf(o)
}

// same compares stripped objects; two deletions are the same.
func same[T object](a, b T) bool {
	if isNone(a) || isNone(b) {
		return isNone(a) && isNone(b)
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

// event is what an API server reported about one object.
type event[T object] struct {
	key key
	// object is stripped; the zero object stands for one that was deleted or does
	// not matter.
	object T
	// err is why the object cannot be processed.
	err error
}

// eventOf strips an object. It returns an error for one of another type.
func (s *store[T]) eventOf(item any) (event[T], error) {
	e, object, err := s.identify(item)
	if err == nil && e.err == nil {
		e.err = kube.Catch(func() {
			if s.strip(object) {
				e.object = object
			}
		})
	}
	return e, err
}

// identify returns an event with the key of an item, and the item as an object.
func (s *store[T]) identify(item any) (event[T], T, error) {
	var none T
	switch item := item.(type) {
	case *brokenObject: // first: it is one of the objects that a T of all types may be
		return event[T]{key: keyOf(item), err: item.err}, none, nil
	case T:
		return event[T]{key: keyOf(item)}, item, nil
	}
	return event[T]{}, none, fmt.Errorf("object of type %T where %T was expected", item, none)
}

// apply stores an event under the lock and reports whether something changed.
func (s *store[T]) apply(e event[T]) (changed bool) {
	if e.err == nil {
		e.err = kube.Catch(func() { changed = s.set(e.key, e.object) })
	}
	return s.setBroken(e.key, e.err) || changed
}

// setBroken records whether an object could be processed, and reports whether
// that is new.
func (s *store[T]) setBroken(k key, err error) bool {
	was, broken := s.broken[k]
	switch {
	case err == nil:
		delete(s.broken, k)
		return broken
	case broken && was == err.Error():
		return false
	}
	s.broken[k] = err.Error()
	s.rejected(k, err)
	return true
}

// handle stores one event and calls changed if something changed.
func (s *store[T]) handle(e event[T]) {
	s.mu.Lock()
	changed := s.apply(e)
	s.count()
	s.mu.Unlock()
	if changed {
		s.changed()
	}
}

// put stores an object or, if it no longer matters, removes it.
func (s *store[T]) put(item any) error {
	e, err := s.eventOf(item)
	if err != nil {
		return err
	}
	s.handle(e)
	return nil
}

// Add implements cache.ReflectorStore.
func (s *store[T]) Add(item any) error { return s.put(item) }

// Update implements cache.ReflectorStore.
func (s *store[T]) Update(item any) error { return s.put(item) }

// Delete implements cache.ReflectorStore.
func (s *store[T]) Delete(item any) error {
	e, _, err := s.identify(item)
	if err != nil {
		return err
	}
	s.handle(event[T]{key: e.key})
	return nil
}

// Replace implements cache.ReflectorStore: items are all objects of the kind.
func (s *store[T]) Replace(items []any, _ string) error {
	next := make(map[key]event[T], len(items))
	for _, item := range items {
		e, err := s.eventOf(item)
		if err != nil {
			return err
		}
		next[e.key] = e
	}
	s.mu.Lock()
	changed := !s.filled
	s.filled = true
	for _, known := range [][]key{keysOf(s.sorted), keysIn(s.pending), keysIn(s.broken)} {
		for _, k := range known {
			if _, still := next[k]; !still {
				changed = s.apply(event[T]{key: k}) || changed
			}
		}
	}
	for _, e := range next {
		changed = s.apply(e) || changed
	}
	s.count()
	s.mu.Unlock()
	if changed {
		s.changed()
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
func (s *store[T]) Resync() error { return nil }

// Transformer implements cache.TransformingStore: objects are stripped as they
// are read from a stream, before a whole list of them is in memory.
func (s *store[T]) Transformer() cache.TransformFunc {
	return func(item any) (any, error) { return s.stripped(item), nil }
}

// stripped is an object without what the engine does not read, or a
// brokenObject if it cannot be processed.
func (s *store[T]) stripped(item any) any {
	object, ok := item.(T)
	if !ok {
		return item
	}
	if err := kube.Catch(func() { s.strip(object) }); err != nil {
		return &brokenObject{ObjectMeta: metav1.ObjectMeta{Namespace: object.GetNamespace(), Name: object.GetName()}, err: err}
	}
	return item
}
