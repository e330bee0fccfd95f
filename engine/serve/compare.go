package serve

import "github.com/meshctl/meshctl/engine/snapshot"

// counts tells how one Output differs from the one before.
type counts struct {
	// parts is how many there are; computed, how many of them are new.
	parts, computed int
	// dropped is how many of those before are no more, or were computed anew.
	dropped int
	// statuses is how many are new.
	statuses int
}

func (c counts) changed() bool { return c.computed+c.dropped+c.statuses > 0 }

// compare counts what is new in a state, by pointer. Before may be nil.
func compare(before, now *snapshot.State) counts {
	was := &snapshot.Output{}
	if before != nil {
		was = before.Output
	}
	is := now.Output
	parts := common(was.Parts, is.Parts, func(a, b *snapshot.Part) bool { return a.Key < b.Key })
	statuses := common(was.Statuses, is.Statuses, func(a, b *snapshot.Status) bool { return a.Ref.Compare(b.Ref) < 0 })
	return counts{
		parts: len(is.Parts), computed: len(is.Parts) - parts, dropped: len(was.Parts) - parts,
		statuses: len(is.Statuses) - statuses,
	}
}

// common counts the pointers that two lists, both ascending, share.
func common[T any](a, b []*T, less func(a, b *T) bool) int {
	shared := 0
	for len(a) > 0 && len(b) > 0 {
		switch {
		case a[0] == b[0]:
			shared++
			a, b = a[1:], b[1:]
		case less(a[0], b[0]):
			a = a[1:]
		case less(b[0], a[0]):
			b = b[1:]
		default:
			a, b = a[1:], b[1:]
		}
	}
	return shared
}
