package mirror

import (
	"iter"
	"maps"
	"slices"
	"sync"

	"github.com/meshctl/meshctl/engine/snapshot"
)

// ID names an object within one cluster.
type ID struct {
	Kind            snapshot.Kind
	Namespace, Name string
}

// size is about what an object of this name takes in a mirror, in bytes.
func (i ID) size() int64 { return 300 + int64(len(i.Namespace)+len(i.Name)) }

// IDOf is the name of an object in its cluster.
func IDOf(r snapshot.Ref) ID { return ID{Kind: r.Kind, Namespace: r.Namespace, Name: r.Name} }

// Ref is the name with the cluster.
func (i ID) Ref(cluster string) snapshot.Ref {
	return snapshot.Ref{Kind: i.Kind, Cluster: cluster, Namespace: i.Namespace, Name: i.Name}
}

// Object is what is kept of an object that exists.
type Object struct {
	// Version is the resource version; those of one cluster compare.
	Version uint64
	// Spec and Status are the digests of what the management plane applied.
	Spec, Status Digest
	// Since says since when the conditions of its status are as they are; nil if it has none.
	Since Transitions
	// Created is in seconds since 1970, as API servers keep it.
	Created int64
	// Source is the cluster in which a discovered object was found. Of another object it
	// is the one that its label names, if it is not this cluster.
	Source string
	// Other is another management plane that wrote it; zero if none did.
	Other snapshot.Plane
	Owner Owner
	// Here: the cluster label is this cluster's. Going: it is being deleted.
	Here, Going bool
	// Protects is that of its Relations.
	Protects bool
}

// Owner says whose an object is.
type Owner uint8

const (
	// Foreign objects are somebody else's.
	Foreign Owner = iota
	// Unmarked ones have the labels of this management plane, without its identity.
	Unmarked
	// Marked ones have both.
	Marked
)

// Ours reports whether an object is this management plane's.
func (o *Object) Ours() bool { return o.Owner != Foreign }

// Mirror is what exists in one cluster, of the kinds that the management plane writes. Its methods may be called from any
// goroutine.
type Mirror struct {
	// hold counts the memory of the objects, in bytes.
	hold func(int64)

	mu      sync.Mutex
	objects map[ID]Object
	// planes counts the objects of other management planes.
	planes map[snapshot.Plane]int
	kinds  map[snapshot.Kind]KindState
	// seen is the newest version of each kind that a watch has delivered.
	seen map[snapshot.Kind]uint64
}

// KindState says whether the mirror of a kind is complete.
type KindState struct {
	// Listed: all objects of the kind were listed once.
	Listed bool
	// Absent: the API server serves no such kind.
	Absent bool
	// Refused is why the API server rejects listing the kind; empty if it does not.
	Refused string
}

// Complete reports whether the mirror of the kind is complete.
func (s KindState) Complete() bool { return s.Listed && !s.Absent && s.Refused == "" }

// New is a Mirror of which nothing is known yet; hold counts its memory in bytes.
func New(hold func(int64)) *Mirror {
	return &Mirror{
		objects: map[ID]Object{}, planes: map[snapshot.Plane]int{}, kinds: map[snapshot.Kind]KindState{}, seen: map[snapshot.Kind]uint64{}, hold: hold,
	}
}

// Find is what exists under a name.
func (m *Mirror) Find(of ID) (Object, bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	l, exists := m.objects[of]
	return l, exists
}

// All is everything that exists now.
func (m *Mirror) All() iter.Seq2[ID, Object] {
	m.mu.Lock()
	objects := maps.Clone(m.objects)
	m.mu.Unlock()
	return maps.All(objects)
}

// State says whether what is known of a kind is complete.
func (m *Mirror) State(kind snapshot.Kind) KindState {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.kinds[kind]
}

// Others are the other management planes with objects there, in no order.
func (m *Mirror) Others() []snapshot.Plane {
	m.mu.Lock()
	defer m.mu.Unlock()
	return slices.Collect(maps.Keys(m.planes))
}

// event handles a watch event; false if it contains nothing new, because a response
// to a write of ours came earlier.
func (m *Mirror) event(of ID, l Object, deleted bool) bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.seen[of.Kind] = max(m.seen[of.Kind], l.Version)
	known, exists := m.objects[of]
	if exists && (known.Version > l.Version || known.Version == l.Version && !deleted) {
		return false
	}
	if deleted {
		m.take(of)
		return exists
	}
	m.put(of, l)
	return true
}

// written handles the response to a write; false if it contains nothing new. If the watch has
// delivered newer events, it is ignored: the object may be deleted again.
func (m *Mirror) written(of ID, l Object) bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	known, exists := m.objects[of]
	if l.Version <= m.seen[of.Kind] || exists && known.Version == l.Version {
		return false
	}
	m.put(of, l)
	return true
}

// replace handles a complete list. It returns the ids that changed, and whether the kind was complete before.
func (m *Mirror) replace(kind snapshot.Kind, list map[ID]Object, version uint64) (changed []ID, complete bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	complete = m.kinds[kind].Complete()
	m.kinds[kind] = KindState{Listed: true}
	m.seen[kind] = version
	for of, l := range m.objects {
		if _, still := list[of]; of.Kind == kind && !still && l.Version <= version {
			m.take(of)
			changed = append(changed, of)
		}
	}
	for of, l := range list {
		if known, exists := m.objects[of]; !exists || known.Version < l.Version {
			m.put(of, l)
			changed = append(changed, of)
		}
	}
	return changed, complete
}

// keep removes of a kind what was not held at a version, and is not newer. It returns the ids that went, and whether the kind was
// complete before.
func (m *Mirror) keep(kind snapshot.Kind, version uint64, held func(ID) bool) (gone []ID, complete bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	complete = m.kinds[kind].Complete()
	m.kinds[kind] = KindState{Listed: true}
	m.seen[kind] = max(m.seen[kind], version)
	for of, l := range m.objects {
		if of.Kind == kind && l.Version <= version && !held(of) {
			m.take(of)
			gone = append(gone, of)
		}
	}
	return gone, complete
}

// Seen is the newest version of a kind that a watch has delivered.
func (m *Mirror) Seen(kind snapshot.Kind) uint64 {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.seen[kind]
}

// forget removes all objects of a kind that is no longer served. It reports whether that is news.
func (m *Mirror) forget(kind snapshot.Kind) bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	news := !m.kinds[kind].Absent
	m.kinds[kind] = KindState{Absent: true}
	for of := range m.objects {
		if of.Kind == kind {
			m.take(of)
		}
	}
	return news
}

// refuse notes why a kind cannot be listed; empty if it can. It reports whether that is news.
func (m *Mirror) refuse(kind snapshot.Kind, why string) bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	state := m.kinds[kind]
	news := state.Refused != why
	state.Refused = why
	m.kinds[kind] = state
	return news
}

// mostPlanes is how many other management planes are counted: whoever may create one object can give it the labels of any number.
const mostPlanes = 100

// put enters what exists, under the lock.
func (m *Mirror) put(of ID, l Object) {
	m.take(of)
	m.hold(of.size())
	m.objects[of] = l
	if _, known := m.planes[l.Other]; l.Other != (snapshot.Plane{}) && (known || len(m.planes) < mostPlanes) {
		m.planes[l.Other]++
	}
}

// take removes what does not exist any more, under the lock.
func (m *Mirror) take(of ID) {
	was, exists := m.objects[of]
	if !exists {
		return
	}
	m.hold(-of.size())
	delete(m.objects, of)
	if m.planes[was.Other] > 1 {
		m.planes[was.Other]--
	} else {
		delete(m.planes, was.Other)
	}
}
