package apply

import (
	"github.com/meshctl/meshctl/engine/snapshot"
)

// id names an object within one cluster.
type id struct {
	kind            snapshot.Kind
	namespace, name string
}

// size is about what an object of this name takes in a mirror, in bytes.
func (i id) size() int64 { return 300 + int64(len(i.namespace)+len(i.name)) }

func idOf(r snapshot.Ref) id { return id{kind: r.Kind, namespace: r.Namespace, name: r.Name} }

func (i id) ref(cluster string) snapshot.Ref {
	return snapshot.Ref{Kind: i.kind, Cluster: cluster, Namespace: i.namespace, Name: i.name}
}

// live is what the sink keeps of an object that exists.
type live struct {
	version      uint64
	spec, status digest
	// created is in seconds since 1970, as API servers keep it.
	created int64
	// source is the cluster in which a discovered object was found. Of another object it
	// is the one that its label names, if it is not this cluster.
	source string
	// other is another management plane that wrote it; zero if none did.
	other snapshot.Plane
	// ours: the labels are this management plane's. marked: they have its identity, too.
	// here: the cluster label is this cluster's. going: it is being deleted.
	ours, marked, here, going bool
}

// mirror is what exists in one cluster, of the kinds that the sink writes.
// It has no lock of its own.
type mirror struct {
	objects map[id]live
	// others counts the objects of other management planes.
	others map[snapshot.Plane]int
	kinds  map[snapshot.Kind]*kindState
	// hold counts the memory of the objects, in bytes.
	hold func(int64)
}

// kindState says whether the mirror of a kind is complete.
type kindState struct {
	// listed: all objects of the kind were listed once.
	listed bool
	// absent: the API server serves no such kind.
	absent bool
	// refused is why the API server rejects listing the kind; empty if it does not.
	refused string
	// seen is the newest version that a watch has delivered.
	seen uint64
}

// settled reports whether the kind was listed or cannot be.
func (s *kindState) settled() bool { return s.listed || s.absent || s.refused != "" }

// current reports whether the mirror of the kind is complete.
func (s *kindState) current() bool { return s.listed && !s.absent && s.refused == "" }

func newMirror(kinds []snapshot.Kind, hold func(int64)) mirror {
	m := mirror{objects: map[id]live{}, others: map[snapshot.Plane]int{}, kinds: map[snapshot.Kind]*kindState{}, hold: hold}
	for _, k := range kinds {
		m.kinds[k] = &kindState{}
	}
	return m
}

// ready reports whether every kind is settled.
func (m *mirror) ready() bool {
	for _, s := range m.kinds {
		if !s.settled() {
			return false
		}
	}
	return true
}

// event handles a watch event; false if it contains nothing new, because a response
// to a write of ours came earlier.
func (m *mirror) event(of id, l live, deleted bool) bool {
	state := m.kinds[of.kind]
	state.seen = max(state.seen, l.version)
	known, exists := m.objects[of]
	if exists && (known.version > l.version || known.version == l.version && !deleted) {
		return false
	}
	if deleted {
		m.take(of)
		return exists
	}
	m.put(of, l)
	return true
}

// written handles the response to a write. If the watch has delivered newer events,
// it is ignored: the object may be deleted again.
func (m *mirror) written(of id, l live) {
	if l.version > m.kinds[of.kind].seen {
		m.put(of, l)
	}
}

// replace handles a complete list and returns the ids that changed.
func (m *mirror) replace(kind snapshot.Kind, list map[id]live, version uint64) []id {
	state := m.kinds[kind]
	state.listed, state.absent, state.refused = true, false, ""
	state.seen = version
	var changed []id
	for of, l := range m.objects {
		if _, still := list[of]; of.kind == kind && !still && l.version <= version {
			m.take(of)
			changed = append(changed, of)
		}
	}
	for of, l := range list {
		if known, exists := m.objects[of]; !exists || known.version < l.version {
			m.put(of, l)
			changed = append(changed, of)
		}
	}
	return changed
}

// forget removes all objects of a kind that is no longer served.
func (m *mirror) forget(kind snapshot.Kind) {
	state := m.kinds[kind]
	state.listed, state.absent, state.refused = false, true, ""
	for of := range m.objects {
		if of.kind == kind {
			m.take(of)
		}
	}
}
