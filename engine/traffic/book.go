package traffic

import (
	"maps"
	"time"

	"github.com/meshctl/meshctl/engine/snapshot"
)

// Proxy is that of one pod. A pod that replaces another of the same name was created later.
type Proxy struct {
	Cluster, Namespace, Pod string
	// Created is when the pod was, in seconds since 1970.
	Created int64
}

// Came are numbers that came to a target of a proxy since its reading before.
type Came struct {
	Target Target
	Values Values
}

// account is what is known of a proxy.
type account struct {
	// started is when the proxy did, by its own word; zero if it does not say. uptime is how long it had been running at its last reading.
	started time.Time
	uptime  time.Duration
	// own: its own numbers count, not those of its clusters. decided: that stays.
	own, decided bool
	last         map[Target]*Values
	// older is how many readings in a row were of a process before.
	older int
}

// Book keeps the last reading of each proxy. The zero Book is not ready: use NewBook.
type Book struct {
	since    time.Time
	accounts map[Proxy]*account
	// begun is when counting began in clusters where it began anew.
	begun map[string]time.Time
}

// NewBook begins to count at a time: what proxies counted before is a base, not traffic.
func NewBook(since time.Time) *Book {
	return &Book{since: since, accounts: map[Proxy]*account{}, begun: map[string]time.Time{}}
}

// Begin begins to count anew in a cluster: what its proxies counted before was counted otherwise, or is not known.
func (b *Book) Begin(cluster string, at time.Time) {
	b.Keep(cluster, func(Proxy) bool { return false })
	b.begun[cluster] = at
}

// began is when counting began in a cluster.
func (b *Book) began(cluster string) time.Time {
	if at, anew := b.begun[cluster]; anew {
		return at
	}
	return b.since
}

// A proxy says for how long it had been running when it last flushed its statistics: every 5 s, unless its pod says otherwise
// (envoyproxy.io: Bootstrap, stats_flush_interval; istio.io: annotation sidecar.istio.io/statsFlushInterval).
const (
	// stale is by how much later a proxy may seem to have started than it did: a flush, a second for whole seconds, and as long as its
	// answer takes.
	stale = 11 * time.Second
	// slack is by how much two readings may differ about when a proxy started. Where somebody else read it, their clock may be set in between.
	slack = 30 * time.Second
)

// maxOlder is how many readings in a row may be of a process before.
const maxOlder = 20

// Take adds a reading that was made at a time, and returns what came since the one before. The first reading of a proxy is a base, unless
// the proxy started after the book began: then all of it came since. Readings of one proxy have to be in their order, but for Unordered ones.
func (b *Book) Take(p Proxy, at time.Time, r *Reading) []Came {
	var born time.Time
	if r.Uptime >= 0 {
		born = at.Add(-r.Uptime)
	}
	started := r.Started
	if started.IsZero() {
		started = born
	}
	a := b.accounts[p]
	base := false
	switch {
	case a == nil:
		a = &account{last: map[Target]*Values{}}
		b.accounts[p] = a
		base = born.IsZero() || born.Add(-stale).Before(b.began(p.Cluster))
	case r.Unordered && !started.IsZero() && a.started.Sub(started) > slack:
		// It is of the process before; or the clock was set back, which all that follow say then.
		if a.older++; a.older < maxOlder {
			return nil
		}
		*a, base = account{last: map[Target]*Values{}}, true
	case a.replaced(started, r):
		*a = account{last: map[Target]*Values{}}
	}
	if a.started.IsZero() || !r.Started.IsZero() {
		a.started = started // clocks of others may be set
	}
	if r.Uptime >= 0 {
		a.uptime = r.Uptime
	}
	a.older = 0
	if !a.decided && r.counts {
		a.own, a.decided = r.own, true
	}
	now := r.chosen(a.own)
	if r.Unordered {
		now = a.latest(now)
	}
	var out []Came
	if !base {
		out = make([]Came, 0, len(now))
	}
	for target, v := range now {
		before := a.last[target]
		if before == nil {
			before = &Values{}
		}
		if came := v.since(before); !base && came != (Values{}) {
			out = append(out, Came{target, came})
		}
	}
	// A target that is not there any more begins again at 0 when it returns: proxies forget what nothing refers to.
	a.last = now
	return out
}

// replaced reports whether a reading is of another process than those before. This process reads proxies in their order: another one has been
// running for less time, or does not say for how long, as it has not flushed yet. One that lived for less time than its successor has when that
// is read is not noticed: no more is counted then than came. If somebody else read it, something has to have begun again, too: the difference
// may be one of clocks. A server that does not say when the proxy started says nothing about that.
func (a *account) replaced(started time.Time, r *Reading) bool {
	if r.Started.IsZero() {
		return !r.Unordered && max(r.Uptime, 0) < a.uptime
	}
	return !a.started.IsZero() && started.Sub(a.started) > slack && a.smaller(r.chosen(a.own))
}

// smaller reports whether something of what was there before is less now, or is gone.
func (a *account) smaller(now map[Target]*Values) bool {
	for target, before := range a.last {
		v := now[target]
		if v == nil {
			return true
		}
		for i, n := range before {
			if v[i] < n {
				return true
			}
		}
	}
	return false
}

// latest is the most that was ever read of each number: what is less is older.
func (a *account) latest(now map[Target]*Values) map[Target]*Values {
	out := make(map[Target]*Values, max(len(now), len(a.last)))
	maps.Copy(out, a.last)
	for target, v := range now {
		most := *v
		if before := out[target]; before != nil {
			for i, n := range before {
				most[i] = max(most[i], n)
			}
		}
		out[target] = &most
	}
	return out
}

// Counts reports whether the proxy has said once that it counts requests.
func (b *Book) Counts(p Proxy) bool {
	a := b.accounts[p]
	return a != nil && a.decided
}

// Own reports whether the proxy's own numbers count, and not those of its clusters.
func (b *Book) Own(p Proxy) bool {
	a := b.accounts[p]
	return a != nil && a.decided && a.own
}

// Knows reports whether there was a reading of the proxy.
func (b *Book) Knows(p Proxy) bool { return b.accounts[p] != nil }

// Keep forgets the proxies of a cluster that are not kept: their pods are gone. What they counted stays where it was added.
func (b *Book) Keep(cluster string, keep func(Proxy) bool) {
	for p := range b.accounts {
		if p.Cluster == cluster && !keep(p) {
			delete(b.accounts, p)
		}
	}
}

// Key is an edge: what a workload calls. One whose To is a Workload has the requests that this gets, whoever sends them.
type Key struct {
	// From is a Workload; zero stands for several callers. To is a Destination, a VirtualDestination or a Workload; zero stands for hosts
	// that are none.
	From, To snapshot.Ref
	// Port by which it is called; 0 if that is not known.
	Port   uint32
	Subset string
	// Door is how its numbers come in.
	Door Door
}

// Serves: the edge has the requests that a workload gets.
func (k *Key) Serves() bool { return k.To.Kind == snapshot.Workload }
