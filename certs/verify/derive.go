package verify

import (
	"slices"
	"time"
)

// How far times of different clocks must be apart to be compared.
const (
	// clocks is for those of API servers, which were compared with the agent's a moment ago, and for times cut to seconds.
	clocks = 5 * time.Second
	// nodeClock is for those of nodes, which were compared with none.
	nodeClock = time.Minute
	// push is the time within which roots reach a workload that follows them, once all of the control plane has them.
	push = 30 * time.Second
)

// world is what is true of all workloads at once.
type world struct {
	now  time.Time
	skew time.Duration
	// signs is the root that all of the control plane signs with; empty if there is no such. since is since when.
	signs string
	since time.Time
	// signers are all roots that the control plane signs with now.
	signers []string
	// handedOut is since when all of the control plane hands out a root.
	handedOut map[string]time.Time
	multiRoot bool
	// pushedAsOne: the one pod of the control plane took up the signer and the roots in one step, and pushed them.
	pushedAsOne bool
	// former are the roots that any workload may present that is not known to present others. Those of a namespace that was
	// left out may also present what stands in leftOut.
	former  []string
	leftOut map[string][]string
	// subjects are the names of roots, by fingerprint; only those that no other root has.
	subjects map[string]string
}

// startedAfter reports whether the proxy of a workload certainly started after a time of the agent's clock. A proxy starts
// after its pod was created, whatever its node's clock says.
func (d *world) startedAfter(w *Workload, at time.Time) bool {
	return w.Created.Add(d.skew).After(at.Add(clocks)) || w.Started.After(at.Add(nodeClock))
}

// renewedAfter reports whether all certificates that a workload had at a time have expired. It renews them at half of
// their life; one that could not is not let in anywhere any more.
func (d *world) renewedAfter(w *Workload, at time.Time) bool {
	return w.TTL > 0 && d.now.After(at.Add(w.TTL+nodeClock))
}

// pushedAfter reports whether a workload was sent what the control plane has since then.
func (d *world) pushedAfter(w *Workload, at time.Time) bool {
	return w.FollowsRoots && d.multiRoot && d.now.After(at.Add(push))
}

// trusts reports whether a workload trusts a root, and whether that was seen.
func (d *world) trusts(w *Workload, root string) (trusts, seen bool) {
	if s := w.Seen; s != nil {
		if s.Client == root && s.Accepts != Undecided {
			return s.Accepts == Accepted, true
		}
		if name, unique := d.subjects[root]; unique && len(s.Names) > 0 {
			return slices.Contains(s.Names, name), true
		}
	}
	since, handedOut := d.handedOut[root]
	return handedOut && (d.startedAfter(w, since) || d.renewedAfter(w, since) || d.pushedAfter(w, since)), false
}

// presents are the roots of the certificates that a workload may present now or, by renewal, at any time until the control
// plane changes.
func (d *world) presents(w *Workload) (roots []string, seen bool) {
	if w.Seen != nil && w.Seen.Presents != "" {
		return set([]string{w.Seen.Presents}, d.signers), true
	}
	if d.signs != "" && (d.startedAfter(w, d.since) || d.renewedAfter(w, d.since) || d.pushedAsOne && d.pushedAfter(w, d.since)) {
		return []string{d.signs}, false
	}
	if more := d.leftOut[w.Namespace]; len(more) > 0 {
		return set(d.former, more), false
	}
	return d.former, false
}
