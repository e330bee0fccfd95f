package serve

import (
	"strings"

	"github.com/meshctl/meshctl/engine/snapshot"
)

// counts is how an Output differs from the previous one.
type counts struct {
	// parts is how many there are; computed, how many of them are new.
	parts, computed int
	// dropped is how many of the previous ones were removed or replaced.
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
	out := counts{parts: now.Output.Parts.Len()}
	snapshot.Diff(was.Parts, now.Output.Parts, func(a, b *snapshot.Part) int { return strings.Compare(a.Key, b.Key) },
		func(a, b *snapshot.Part) {
			if a != nil {
				out.dropped++
			}
			if b != nil {
				out.computed++
			}
		})
	snapshot.Diff(was.Statuses, now.Output.Statuses, func(a, b *snapshot.Status) int { return a.Ref.Compare(b.Ref) },
		func(_, b *snapshot.Status) {
			if b != nil {
				out.statuses++
			}
		})
	return out
}
