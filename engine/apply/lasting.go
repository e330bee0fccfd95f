package apply

import (
	"fmt"
	"strings"
	"time"

	"github.com/meshctl/meshctl/engine/mirror"
	"github.com/meshctl/meshctl/engine/snapshot"
)

// This file reports objects that stay different from what is wanted for long, without a failure of their own.

// lastingPause is how long such a phase lasts at least before it is reported.
const lastingPause = 2 * time.Second

// lasting are the objects of a cluster in such phases. The lock of the cluster guards it.
type lasting struct {
	// counted are the items in the phases when they were reported last; due is when they are again, zero if that is not needed.
	counted [len(lastingPhases)]int
	due     time.Time
}

var lastingPhases = [...]Phase{Withdrawing, Kept, Disputed}

// lastingTexts say what is with the objects in a phase, and what the operator can do.
var lastingTexts = [len(lastingPhases)]struct{ what, hint string }{
	{"no longer wanted, and kept for the grace period because no edit explains it", "restore what they follow from if it is missing by mistake"},
	{"not narrowed, because a route uses what would go", "let the route be written if it has a failure, or remove from it what it should not use any more"},
	{"changed by somebody else again and again, and repaired less often", "let the other client leave them alone: `kubectl get --show-managed-fields` names it"},
}

// watch has the items reported if there are others in such a phase. Phases are as they were while nothing may be written. Discovered
// objects in the management cluster protect nothing, and are no news.
func (l *lasting) watch(c *cluster) {
	if c.name == "" || !c.remote.writable() {
		return
	}
	for n, p := range lastingPhases {
		if c.phases[p] != l.counted[n] && l.due.IsZero() {
			l.due = time.Now().Add(lastingPause)
			c.timers.set(l, l.due)
		}
	}
}

// fire implements timer.
func (l *lasting) fire(c *cluster, now time.Time) {
	if l.due.IsZero() || l.due.After(now) {
		return
	}
	l.due = time.Time{}
	if !c.remote.writable() {
		return
	}
	var found [len(lastingPhases)]mirror.ID
	var counts [len(lastingPhases)]int
	for of, i := range c.items {
		for n, p := range lastingPhases {
			if i.phase != p || p == Withdrawing && !c.withdrawals.pending[of].unexplainedSince(now.Add(-lastingPause)) {
				continue
			}
			if counts[n]++; counts[n] == 1 || of.Ref("").Compare(found[n].Ref("")) < 0 {
				found[n] = of
			}
		}
	}
	var what, hints []string
	for n, p := range lastingPhases {
		l.counted[n] = c.phases[p]
		if counts[n] > 0 {
			text := fmt.Sprintf("%s: %s", lastingTexts[n].what, found[n].Ref(c.name))
			if more := counts[n] - 1; more > 0 {
				text += fmt.Sprintf(" and %d more", more)
			}
			what = append(what, text)
			hints = append(hints, lastingTexts[n].hint)
		}
		if p == Withdrawing && counts[n] < c.phases[p] {
			l.counted[n] = counts[n] // the others are too young, or explained
		}
	}
	reason := snapshot.Reason{Code: snapshot.ObjectsWait, What: strings.Join(what, "; "), Hint: strings.Join(hints, "; ")}
	if len(what) == 0 {
		reason = snapshot.Reason{}
	}
	c.reports.set(ofWaiting, reason)
}
