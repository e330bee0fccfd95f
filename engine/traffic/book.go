package traffic

import (
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
	// started is when the proxy did, by its own word; zero if it does not say.
	started time.Time
	// own: its own numbers count, not those of its clusters. decided: that stays.
	own, decided bool
	last         map[Target]*Values
}

// Book keeps the last reading of each proxy. The zero Book is not ready: use NewBook.
type Book struct {
	since    time.Time
	accounts map[Proxy]*account
}

// NewBook begins to count at a time: what proxies counted before is a base, not traffic.
func NewBook(since time.Time) *Book { return &Book{since: since, accounts: map[Proxy]*account{}} }

// slack is by how much two readings may differ about when a proxy started: it says so in whole seconds, and its answer takes time.
const slack = 3 * time.Second

// Take adds a reading that was made at a time, and returns what came since the one before. The first reading of a proxy is a base, unless
// the proxy started after the book began: then all of it came since. Readings of one proxy have to be in their order.
func (b *Book) Take(p Proxy, at time.Time, r *Reading) []Came {
	var started time.Time
	if r.Uptime >= 0 {
		started = at.Add(-r.Uptime)
	}
	a := b.accounts[p]
	base := false
	switch {
	case a == nil:
		a = &account{last: map[Target]*Values{}}
		b.accounts[p] = a
		base = started.IsZero() || started.Before(b.since)
	case !started.IsZero() && !a.started.IsZero() && started.Sub(a.started) > slack:
		*a = account{last: map[Target]*Values{}} // another process
	}
	if a.started.IsZero() {
		a.started = started
	}
	if !a.decided && r.counts {
		a.own, a.decided = r.own, true
	}
	now := r.chosen(a.own)
	var out []Came
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

// Counts reports whether the proxy has said once that it counts requests.
func (b *Book) Counts(p Proxy) bool {
	a := b.accounts[p]
	return a != nil && a.decided
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
}

// Serves: the edge has the requests that a workload gets.
func (k *Key) Serves() bool { return k.To.Kind == snapshot.Workload }
