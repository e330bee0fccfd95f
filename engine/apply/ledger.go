package apply

import (
	"slices"
	"sync"
	"time"

	"github.com/meshctl/meshctl/engine/mirror"
	"github.com/meshctl/meshctl/engine/snapshot"
)

// ledger keeps routes and what they need in step, across all clusters: a route is
// written when the proxies know all that it needs, and what a route needs goes when
// no proxy has a route that uses it.
//
// An API server does not say what proxies know. The control plane collects changes
// until there are none for Debounce, or for DebounceMost at most, and then sends them
// to its proxies, which takes Push at most.
type ledger struct {
	Pace

	mu sync.Mutex
	// unread counts the clusters with objects of earlier processes that were not read yet.
	unread int
	// debounces are those of clusters whose control planes have others than Pace.
	debounces map[string]snapshot.Debounce
	// dependencies are what is known about names.
	dependencies map[mirror.Key]*dependency
	// runs are the last writes to each cluster without a pause of its debounce between
	// them, so that the control plane takes them for one change.
	runs map[string]run
}

// Pace is how fast a control plane passes changes on to its proxies.
type Pace struct {
	// Debounce is how long it waits for further changes; DebounceMost, the longest
	// time it does. Output.Debounces overrides both. Default: snapshot.UsualDebounce.
	Debounce, DebounceMost time.Duration
	// Push is how long it takes at least until all proxies have a change. Default:
	// 200 ms.
	Push time.Duration
	// Patience bounds the wait of a write for what it depends on. Default: 15 s.
	Patience time.Duration
}

func (p Pace) withDefaults() Pace {
	set := func(d *time.Duration, value time.Duration) {
		if *d <= 0 {
			*d = value
		}
	}
	set(&p.Debounce, snapshot.UsualDebounce.After)
	set(&p.DebounceMost, snapshot.UsualDebounce.Most)
	set(&p.Push, 200*time.Millisecond)
	set(&p.Patience, 15*time.Second)
	return p
}

// follow sets how long control planes wait for further changes.
func (l *ledger) follow(debounces map[string]snapshot.Debounce) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.debounces = debounces
}

// debounce is how long the control plane of a cluster waits for further changes. The
// caller holds the lock.
func (l *ledger) debounce(cluster string) snapshot.Debounce {
	if d, found := l.debounces[cluster]; found {
		return d
	}
	return snapshot.Debounce{After: l.Debounce, Most: l.DebounceMost}
}

// settled is how long it takes, unless a control plane is busy, until the proxies of all
// clusters have a change.
func (l *ledger) settled() time.Duration {
	l.mu.Lock()
	defer l.mu.Unlock()
	slowest := l.Debounce
	for _, d := range l.debounces {
		slowest = max(slowest, d.After)
	}
	return slowest + l.Push
}

// usual is how long a route waits at most unless the control plane is busy.
func (l *ledger) usual() time.Duration { return min(10*l.settled(), l.Patience) }

// run is a series of writes.
type run struct {
	first, last time.Time
	// slowest is the time of the slowest write.
	slowest time.Duration
}

// push is how long the control plane takes to send a change to its proxies. It also
// validates each write, so a slow answer tells that it is busy.
func (l *ledger) push(r run) time.Duration {
	const factor, most = 10, 5 * time.Second
	return max(l.Push, min(factor*r.slowest, most))
}

// party is an object that needs or provides names. The lock of the ledger guards what is not constant.
type party struct {
	id      mirror.ID
	cluster *reach
	// held: there is an obstacle to what is wanted, and proxies have what was written before. refused: it has a failure.
	held, refused bool
}

// reach is whether a cluster can be written to.
type reach struct {
	cluster string
	access
}

// access is what changes of a reach.
type access struct {
	// able: writes are allowed. silent: they are not, and that will not change in a moment. reading: there may be routes of an
	// earlier process that were not read yet.
	able, silent, reading bool
}

// dependency is what is known about one name that routes need.
type dependency struct {
	// pending are those that will provide it and are not written yet; true if requests for it go to their cluster.
	pending map[*party]bool
	// consumers are those whose routes use it; true if that is so as they are written, and
	// false if it will be.
	consumers map[*party]bool
	// provided and released are the writes since which it is provided, or no longer
	// used, that proxies may not know yet.
	provided, released []writeEvent
}

// writeEvent is a write in a cluster.
type writeEvent struct {
	cluster string
	at      time.Time
}

func newLedger(p Pace) *ledger {
	return &ledger{Pace: p, dependencies: map[mirror.Key]*dependency{}, runs: map[string]run{}}
}

// dependency returns what is known of a name. The caller holds the lock, and calls tidy later.
func (l *ledger) dependency(name mirror.Key) *dependency {
	f := l.dependencies[name]
	if f == nil {
		f = &dependency{pending: map[*party]bool{}, consumers: map[*party]bool{}}
		l.dependencies[name] = f
	}
	return f
}

// tidy forgets what proxies know, and names about which nothing is left.
func (l *ledger) tidy(name mirror.Key, f *dependency, now time.Time) {
	known := func(m writeEvent) bool { return l.known(m, now) }
	f.provided = slices.DeleteFunc(f.provided, known)
	f.released = slices.DeleteFunc(f.released, known)
	if len(f.pending)+len(f.consumers)+len(f.provided)+len(f.released) == 0 {
		delete(l.dependencies, name)
	}
}

// known reports whether all proxies of a cluster have a write.
func (l *ledger) known(m writeEvent, now time.Time) bool {
	r := l.runs[m.cluster]
	if r.first.After(m.at) {
		// Its run has ended, at the latest when the present one began.
		return now.Sub(r.first) >= l.push(r)
	}
	d := l.debounce(m.cluster)
	// It looks at the limit only when it has waited for further changes.
	return now.Sub(r.last) >= d.After+l.push(r) || now.Sub(m.at) >= d.After+d.Most+l.push(r)
}

// reached says whether a cluster can be written to.
func (l *ledger) reached(c *reach, is access) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if c.reading {
		l.unread--
	}
	if is.reading {
		l.unread++
	}
	c.access = is
}

// reading reports whether objects of earlier processes are still to be read in some cluster.
func (l *ledger) reading() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.unread > 0
}

// holds says whether there is an obstacle to what is wanted of a party.
func (l *ledger) holds(p *party, held bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	p.held = held
}

// refuses says whether a party has a failure.
func (l *ledger) refuses(p *party, refused bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	p.refused = refused
}

// announce says that a party will provide names.
func (l *ledger) announce(p *party, names []name) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, n := range names {
		l.dependency(n.key).pending[p] = n.Home
	}
}

// intend says what the routes of a party will use instead of what they were to use.
// What they use as they are written, or may be written, is in current.
func (l *ledger) intend(p *party, before, after []name, current ...[]name) {
	l.mu.Lock()
	defer l.mu.Unlock()
	now := time.Now()
	for _, n := range after {
		if f := l.dependency(n.key); !f.consumers[p] {
			f.consumers[p] = false
		}
	}
	for _, n := range before {
		if !contains(after, n) && !slices.ContainsFunc(current, func(names []name) bool { return contains(names, n) }) {
			f := l.dependency(n.key)
			delete(f.consumers, p)
			l.tidy(n.key, f, now)
		}
	}
}

// wrote says that a party is as one content now, and was as another one before; nil
// is an object that does not exist. Unless written is true, it was found like that;
// took is the time of the write.
func (l *ledger) wrote(p *party, before, after *content, written bool, took time.Duration) {
	l.mu.Lock()
	defer l.mu.Unlock()
	now, cluster := time.Now(), p.cluster.cluster
	if written {
		r := l.runs[cluster]
		if now.Sub(r.last) > l.debounce(cluster).After {
			// A busy control plane is still busy a moment later.
			r.first, r.slowest = now, r.slowest/2
		}
		r.last, r.slowest = now, max(r.slowest, took)
		l.runs[cluster] = r
	}
	had := before.provides(cluster)
	for _, n := range after.provides(cluster) {
		f := l.dependency(n.key)
		delete(f.pending, p)
		if written && !n.Together && !contains(had, n) {
			f.provided = append(f.provided, writeEvent{cluster, now})
		}
		l.tidy(n.key, f, now)
	}
	uses := after.needs(cluster)
	for _, n := range uses {
		// An edit during another write may have ended a use that continues.
		l.dependency(n.key).consumers[p] = true
	}
	for _, n := range before.needs(cluster) {
		if contains(uses, n) {
			continue
		}
		f := l.dependency(n.key)
		delete(f.consumers, p)
		if written {
			f.released = append(f.released, writeEvent{cluster, now})
		}
		l.tidy(n.key, f, now)
	}
}

// retract says that a party will not provide names, which it was to provide.
func (l *ledger) retract(p *party, names []name) {
	l.mu.Lock()
	defer l.mu.Unlock()
	now := time.Now()
	for _, n := range names {
		if f := l.dependencies[n.key]; f != nil {
			delete(f.pending, p)
			l.tidy(n.key, f, now)
		}
	}
}

// provided reports whether all proxies know what routes need. What is in a cluster
// that cannot be written to does not count; see obstacle.
func (l *ledger) provided(names []name) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	now := time.Now()
	for _, n := range names {
		f := l.dependencies[n.key]
		if f == nil {
			continue
		}
		l.tidy(n.key, f, now)
		if len(f.provided) > 0 {
			return false
		}
		for p := range f.pending {
			if p.cluster.able {
				return false
			}
		}
	}
	return true
}

// obstacle is why a route cannot be written: an object that is to provide a name cannot be
// written, because its cluster does not answer or the write is refused.
type obstacle struct {
	name   string
	object snapshot.Ref
	access
}

// obstacle returns what keeps proxies from knowing one of the names, the first by its object; false if nothing does.
// In a cluster that does not answer, that counts for what its gateways have to know before
// routes of other clusters use it.
func (l *ledger) obstacle(names []name) (first obstacle, found bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, n := range names {
		f := l.dependencies[n.key]
		if f == nil {
			continue
		}
		for p, home := range f.pending {
			if able := p.cluster.able; able && !p.refused || !able && !home {
				continue
			}
			if is := (obstacle{n.Text, p.id.Ref(p.cluster.cluster), p.cluster.access}); !found || is.object.Compare(first.object) < 0 {
				first, found = is, true
			}
		}
	}
	return first, found
}

// use says how long what provides a name has to stay because of routes.
type use uint8

// In rising order.
const (
	unused use = iota
	// coming: a route that uses it is about to be written.
	coming
	// leaving: routes used it until a moment ago, and proxies may not know yet that they no longer do. That ends by itself.
	leaving
	// standing: a route uses it as it is written, and no other version is written yet.
	standing
	// held: that is so because another version cannot be written; see obstacle.
	held
)

// use returns the longest use of the names.
func (l *ledger) use(names []name) use {
	l.mu.Lock()
	defer l.mu.Unlock()
	now := time.Now()
	longest := unused
	for _, n := range names {
		f := l.dependencies[n.key]
		if f == nil {
			continue
		}
		l.tidy(n.key, f, now)
		if len(f.released) > 0 {
			longest = max(longest, leaving)
		}
		for p, written := range f.consumers {
			switch {
			case p.held:
				return held
			case written:
				longest = max(longest, standing)
			default:
				longest = max(longest, coming)
			}
		}
	}
	return longest
}

// name is a name in the cluster of an object that needs or provides it.
type name struct {
	mirror.Name
	key mirror.Key
}

// needs lists what the routes of a content need in a cluster; a nil content has none.
func (c *content) needs(cluster string) []name { return namesIn(cluster, c.relations().Needs) }

// provides lists what routes may need of a content in a cluster; a nil content provides
// nothing.
func (c *content) provides(cluster string) []name { return namesIn(cluster, c.relations().Provides) }

func namesIn(cluster string, names []mirror.Name) []name {
	out := make([]name, len(names))
	for i, n := range names {
		out[i] = name{n, n.Key(cluster)}
	}
	return out
}

// without lists the names that are not in others. Both are ascending by key.
func without(names, others []name) []name {
	return slices.DeleteFunc(slices.Clone(names), func(n name) bool { return contains(others, n) })
}

func contains(names []name, one name) bool {
	_, found := slices.BinarySearchFunc(names, one.key, func(n name, key mirror.Key) int { return n.key.Compare(key) })
	return found
}
