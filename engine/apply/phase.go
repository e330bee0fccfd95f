package apply

// Phase says why an object is not written at present.
type Phase uint8

const (
	// Undecided: it is about to be decided, or a request is on its way.
	Undecided Phase = iota
	// AsWanted: nothing is to be done.
	AsWanted
	// Unreachable: the cluster cannot be written to.
	Unreachable
	// Listing: the objects of its kind are not known yet.
	Listing
	// Failing: it cannot be written until something else changes.
	Failing
	// Refused: the API server refused it, and it is tried again.
	Refused
	// Outage: the server takes no objects of this kind in this namespace, and one of them is tried at a time.
	Outage
	// Conflict: it has changed, and the watch has not said how.
	Conflict
	// Disputed: somebody else keeps changing it, and it is repaired less often.
	Disputed
	// Resting: its writes take long and it changes often.
	Resting
	// NeedsProxies: not all proxies know yet what it needs.
	NeedsProxies
	// NeedsCluster: what it needs is in a cluster to which a connection begins.
	NeedsCluster
	// UsedByProxies: proxies may still use what goes with it.
	UsedByProxies
	// Obstructed: what it needs cannot be written.
	Obstructed
	// Kept: a route that cannot change, or does not, uses what goes with it.
	Kept
	// Held: it is no longer wanted, and stays until an administrator lets it go.
	Held
	// Withdrawing: it is no longer wanted, and stays for a time.
	Withdrawing
	// Removing: it was deleted, and the watch has not said so.
	Removing

	numPhases = iota
)

// soon reports whether a phase ends by itself in a moment, so that Settled waits for it.
func (p Phase) soon() bool {
	switch p {
	case Conflict, Resting, NeedsProxies, NeedsCluster, UsedByProxies:
		return true
	}
	return false
}

// phaseCounts counts the items in each phase.
type phaseCounts [numPhases]int

func (c *phaseCounts) move(from, to Phase) {
	c[from]--
	c[to]++
}

// soon reports whether an item is in a phase that ends by itself in a moment.
func (c *phaseCounts) soon() bool {
	for p, n := range c {
		if n > 0 && Phase(p).soon() {
			return true
		}
	}
	return false
}
