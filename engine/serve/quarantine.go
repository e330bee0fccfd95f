package serve

import (
	"maps"
	"slices"
	"strings"

	"github.com/meshctl/meshctl/engine/snapshot"
)

// quarantine keeps objects with which the translation panics out of it: their last version
// with which it did not takes their place, if there was one. One such object must not keep
// edits of all others from being written.
type quarantine struct{ objects map[snapshot.Ref]quarantined }

type quarantined struct {
	// object is the version with which the translation panics, nil if its deletion does;
	// instead takes its place, nil for none.
	object, instead snapshot.APIObject
	reason          string
}

// clean returns an Input without the objects that are kept out, which it reports as
// failures. One that has changed is tried again.
func (q *quarantine) clean(in *snapshot.Input) *snapshot.Input {
	maps.DeleteFunc(q.objects, func(ref snapshot.Ref, k quarantined) bool { return in.Find(ref) != k.object })
	if len(q.objects) == 0 {
		return in
	}
	out := *in
	out.Failures = slices.Clone(in.Failures)
	in = &out
	for _, ref := range q.refs() {
		k := q.objects[ref]
		in = exchange(in, ref, k.instead)
		message := "translation fails with it, so it has no effect: " + k.reason
		if k.instead != nil {
			message = "translation fails with it, so its previous version stays in effect: " + k.reason
		}
		in.Failures = append(in.Failures, snapshot.Failure{Ref: ref, Reason: snapshot.Reason{Code: snapshot.ObjectUnreadable, What: message}})
	}
	slices.SortFunc(in.Failures, func(a, b snapshot.Failure) int { return a.Ref.Compare(b.Ref) })
	return in
}

func (q *quarantine) refs() []snapshot.Ref {
	return slices.SortedFunc(maps.Keys(q.objects), snapshot.Ref.Compare)
}

// String names the objects; it is empty if there are none.
func (q *quarantine) String() string {
	names := make([]string, 0, len(q.objects))
	for _, ref := range q.refs() {
		names = append(names, ref.String())
	}
	return strings.Join(names, ", ")
}

// exchange puts an object in the place of another one; nil for none.
func exchange(in *snapshot.Input, ref snapshot.Ref, object snapshot.APIObject) *snapshot.Input {
	if object == nil {
		return in.Without(ref)
	}
	out, err := in.With(ref.Cluster, object)
	if err != nil {
		return in // its cluster is gone, and all of its objects are
	}
	return out
}

// search finds the objects because of which an Input cannot be translated: the fewest of
// those that differ from the last Input that could, so that it can be with their previous
// versions. It finds none if it is not because of objects. Without a last Input, any object
// may be the cause, but what may protect something is never left out.
type search struct {
	last, input *snapshot.Input
	// translates reports whether an Input can be translated.
	translates func(*snapshot.Input) bool
}

func (s *search) find() []snapshot.Ref {
	all := s.suspects()
	if len(all) == 0 || !s.works(all) {
		return nil
	}
	return s.fewest(all, nil)
}

// protects reports whether leaving out an object of a kind may open something.
func protects(kind snapshot.Kind) bool {
	switch kind {
	case snapshot.AccessPolicy, snapshot.VirtualMesh, snapshot.Mesh, snapshot.Settings:
		return true
	}
	return false
}

// suspects are the objects that differ from the last Input.
func (s *search) suspects() []snapshot.Ref {
	var out []snapshot.Ref
	for ref, o := range s.input.Objects {
		switch {
		case s.last == nil && !protects(ref.Kind), s.last != nil && s.last.Find(ref) != o:
			out = append(out, ref)
		}
	}
	if s.last != nil {
		for ref := range s.last.Objects {
			if s.input.Find(ref) == nil {
				out = append(out, ref)
			}
		}
	}
	return out
}

// works reports whether the Input can be translated with the previous versions of objects.
func (s *search) works(objects ...[]snapshot.Ref) bool {
	in := s.input
	for _, ref := range slices.Concat(objects...) {
		in = exchange(in, ref, s.previous(ref))
	}
	return s.translates(in)
}

func (s *search) previous(ref snapshot.Ref) snapshot.APIObject {
	if s.last == nil {
		return nil
	}
	return s.last.Find(ref)
}

// fewest returns the fewest of some objects, at least one, that have to be exchanged beside
// others (delta debugging: Zeller and Hildebrandt, Simplifying and Isolating
// Failure-Inducing Input, 2002).
func (s *search) fewest(some, others []snapshot.Ref) []snapshot.Ref {
	if len(some) == 1 {
		return some
	}
	a, b := some[:len(some)/2], some[len(some)/2:]
	switch {
	case s.works(others, a):
		return s.fewest(a, others)
	case s.works(others, b):
		return s.fewest(b, others)
	}
	a = s.fewest(a, slices.Concat(others, b))
	return slices.Concat(a, s.fewest(b, slices.Concat(others, a)))
}
