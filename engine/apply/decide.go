package apply

import (
	"time"

	"github.com/meshctl/meshctl/engine/mirror"
	"github.com/meshctl/meshctl/engine/snapshot"
)

// verb is a request about an item.
type verb uint8

const (
	// none: there is nothing to send.
	none verb = iota
	// readObject: an earlier process wrote the object; what proxies have of it is read before it changes.
	readObject
	writeObject
	writeStatus
	deleteObject
)

// step is a request, with what is needed to send it.
type step struct {
	verb verb
	// version is of the object that the decision is about; 0 if there is none.
	version uint64
	// wanted is the digest of what is sent, which is content or value.
	wanted  mirror.Digest
	content *content
	value   any
	// explained: an edit explains why the object is deleted.
	explained bool
}

// facts are what a decision about an item depends on, together with the view of what is around it.
type facts struct {
	now   time.Time
	id    mirror.ID
	place place
	view  view
	// live is the object as it exists; nil if it does not. garbage: if it is not wanted, it goes. stray: it is known to belong to
	// another cluster.
	live           *mirror.Object
	garbage, stray bool
	// content is what is wanted of the object; nil if no object is wanted. status is nil if no status is.
	content *content
	status  *wantedStatus
	// current is the content that proxies have or are about to get; nil if it is not known.
	current *content
	// unsure: a request had no answer, so that the object may be as current or as was sent.
	unsure  bool
	history *history
	// phase is what the last decision came to.
	phase Phase
	// asked: an Output or a new connection asks for it, and no event of a watch.
	asked bool
	// after is the request that was answered last, in the same pass.
	after verb
	// withdrawal is set if no object is wanted, and one exists that goes.
	withdrawal *withdrawal
}

// place is what a decision depends on that is the same for all items of a kind in a cluster.
type place struct {
	// cluster is the name of the cluster; empty for the management cluster.
	cluster string
	// plane is the namespace of the management plane.
	plane string
	// writable: requests may be sent to the cluster.
	writable bool
	kind     mirror.KindState
	limits   limits
}

// limits are how long items wait.
type limits struct {
	patience, grace, settle time.Duration
}

// view is what a decision asks about what is around an item. It changes nothing.
type view interface {
	// use is how long names have to stay because of routes.
	use(names []name) use
	// provided reports whether all proxies know names.
	provided(names []name) bool
	// obstacle is what keeps proxies from knowing one of the names, however long that takes.
	obstacle(names []name) (obstacle, bool)
	// reading reports whether objects of an earlier process are still to be read somewhere.
	reading() bool
	// widened is the wanted content with what the current one provides; nil if no content has both.
	widened() *content
	// outage is why the server takes no objects like this one at present; empty if it does, or if this one is the trial.
	outage() string
	// held reports whether deletions without an edit wait for an administrator.
	held() bool
	// opens reports whether the deletion of the object lets in everybody.
	opens() bool
	// denied reports whether an object that denies all other requests goes first.
	denied() bool
}

// decision is what follows from facts: a request, or why there is none.
type decision struct {
	step  step
	phase Phase
	// again is when to decide again; zero: when a fact changes.
	again time.Time
	// reason is the failure to report; its code is empty if there is none. err is its cause, if that is a bug.
	reason snapshot.Reason
	err    error
	// since is since when the item waits for proxies; zero if it does not.
	since time.Time
	// found: the object is as this content has it; nil: that is not known.
	found *content
	// statusOnly: only the status is to be written, if anything.
	statusOnly bool
	// kept: what the item provides stays because of a route, however long that takes.
	kept bool
	// obstructed: what is wanted cannot be written, however long that takes, and proxies have what was written before.
	obstructed bool
}

// Pauses between two decisions about an item that waits for what is not its own: for proxies, and for a cluster that does not answer.
const (
	proxiesPause = 20 * time.Millisecond
	clusterPause = 500 * time.Millisecond
)

// decide says what to do about an item. It changes nothing.
func decide(f *facts) decision {
	d := decision{since: f.history.since, obstructed: f.history.obstructed}
	switch {
	case !f.place.writable:
		d.phase = Unreachable
	case f.unread():
		d.step = step{verb: readObject, content: f.content}
	case f.content != nil:
		f.write(&d)
	case f.live != nil && f.garbage:
		f.remove(&d)
	default:
		f.report(&d)
		if r := f.history.refusal; d.phase == AsWanted && f.status == nil && r != nil && r.due.Add(retryMost).After(f.now) {
			d.again = r.due.Add(retryMost) // it may be wanted again until then
		}
	}
	return d
}

// unread reports whether it is not known how the object was written last, by an earlier process or without an answer, and it is not as
// it is wanted.
func (f *facts) unread() bool {
	l := f.live
	// What was read while no object was wanted has no spec.
	known := f.current != nil && !f.unsure && (f.content == nil || f.current.Spec != nil)
	if f.place.cluster == "" || f.id.Kind.Info().Effect&snapshot.Relates == 0 || known || f.after == readObject {
		return false
	}
	if l == nil || !l.Ours() || !l.Here || l.Going || f.history.parked() || f.history.refusal.dueAfter(writeObject, f.now) {
		return false
	}
	if f.content == nil {
		return true
	}
	wanted, err := f.content.get()
	return err == nil && l.Spec != wanted
}

// write decides about an object that is wanted.
func (f *facts) write(d *decision) {
	state := f.place.kind
	switch {
	case state.Absent:
		d.fail(snapshot.WriteFailed, absentMessage(f.id.Kind))
	case state.Refused != "":
		d.fail(snapshot.WriteFailed, unlistedMessage(f.id.Kind, state.Refused))
	case !state.Listed:
		d.phase = Listing
	case f.live != nil && !f.live.Ours():
		d.fail(snapshot.ForeignObject, foreignMessage(f.id.Kind, f.live.Other, f.place.plane))
	case f.live != nil && f.live.Source != "" && f.place.cluster != "" && !f.stray && f.current == nil:
		// If it was found or written here before, somebody has changed its label since.
		d.fail(snapshot.ForeignObject, strayMessage(f.live.Source, f.place.cluster))
	default:
		f.compare(d, f.target(d))
	}
}

// compare decides about an object that is wanted and that may be written.
func (f *facts) compare(d *decision, target *content) {
	if !target.taken.Load() && f.rests(d) {
		return // it may change again
	}
	digest, err := target.get()
	switch {
	case err != nil:
		d.err = err
		d.fail(snapshot.WriteFailed, "cannot be written as JSON: "+err.Error())
		return
	case f.is(digest):
		d.found = target
		if target != f.content {
			d.waitForProxies(f, UsedByProxies)
			return
		}
		f.report(d)
		return
	case f.blocked(d, writeObject), f.rests(d), f.disputed(d):
		return
	}
	if missing := without(f.content.needs(f.place.cluster), f.current.needs(f.place.cluster)); f.place.cluster != "" {
		var o obstacle
		if o, d.obstructed = f.view.obstacle(missing); d.obstructed {
			f.waitFor(d, o)
			return
		}
		if f.patient(d) && !f.view.provided(missing) {
			d.waitForProxies(f, NeedsProxies)
			return
		}
	}
	d.step = step{verb: writeObject, version: f.version(), wanted: digest, content: target}
}

// is reports whether the object exists with this digest, or as the API server stored it when that was written.
func (f *facts) is(digest mirror.Digest) bool {
	l := f.live
	return l != nil && l.Here && l.Owner == mirror.Marked && (l.Spec == digest || f.history.settled == pair{digest, l.Spec})
}

func (f *facts) version() uint64 {
	if f.live == nil {
		return 0
	}
	return f.live.Version
}

// target is the content to write now: the wanted one or, while proxies use what it no longer provides, one that has both.
func (f *facts) target(d *decision) *content {
	content, current := f.content, f.current
	if current == nil || content.Content == current.Content || !f.used(d, without(current.provides(f.place.cluster), content.provides(f.place.cluster))) {
		return content
	}
	if wide := f.view.widened(); wide != nil {
		return wide
	}
	return content
}

// remove decides about an object that is no longer wanted.
func (f *facts) remove(d *decision) {
	switch {
	case f.withheld(d), f.blocked(d, deleteObject):
	case f.place.cluster != "" && f.used(d, f.current.provides(f.place.cluster)):
		d.waitForProxies(f, UsedByProxies)
	default:
		d.step = step{verb: deleteObject, version: f.live.Version, explained: f.withdrawal != nil && f.withdrawal.explained}
	}
}

// withheld reports whether an object that is no longer wanted stays for now. What a user's edit explains goes at once, unless that
// opens a service; all else only after the grace period, but for routes.
func (f *facts) withheld(d *decision) bool {
	w := f.withdrawal
	var wait time.Duration
	switch {
	case w.explained && f.view.opens():
		wait = f.place.limits.settle
	case w.explained:
	case f.view.held():
		d.phase = Held
		return true
	case f.id.Kind.Info().Effect&snapshot.Routes == 0:
		wait = f.place.limits.grace
	}
	switch due := w.since.Add(wait); {
	case due.After(f.now):
		d.wait(Withdrawing, due)
	case f.view.denied():
		d.wait(Withdrawing, f.now.Add(proxiesPause))
	default:
		return false
	}
	return true
}

// report decides about the status of an item whose object is as it is wanted.
func (f *facts) report(d *decision) {
	l, s := f.live, f.status
	if s == nil || l == nil || l.Going || f.id.Kind.Info().Access&snapshot.Write != 0 && !l.Ours() {
		d.phase = AsWanted
		return
	}
	digest, err := s.get()
	switch {
	case err != nil:
		d.err = err
		d.fail(snapshot.WriteFailed, "status cannot be written as JSON: "+err.Error())
	case l.Status == digest || s.settled == pair{digest, l.Status}:
		d.phase = AsWanted
	case f.blocked(d, writeStatus), f.after != writeObject && f.rests(d), f.disputed(d):
		d.statusOnly = true
	default:
		value, _ := mirror.Plain(s.Value) // get has done it
		d.step = step{verb: writeStatus, version: l.Version, wanted: digest, value: l.Since.Date(value, f.now)}
	}
}

// blocked reports whether a request has to wait, because the API server refused it or others like it.
func (f *facts) blocked(d *decision, v verb) bool {
	r := f.history.refusal
	if message := f.view.outage(); message != "" {
		d.fail(snapshot.WriteFailed, failedTo(v, message))
		d.phase = Outage
		return true
	}
	if r.dueAfter(v, f.now) {
		d.wait(Refused, r.due)
		return true
	}
	if o := f.history.outdated; o != nil && o.version == f.version() && o.until.After(f.now) {
		d.wait(Conflict, o.until)
		if o.removed {
			d.phase = Removing
		}
		return true
	}
	return false
}

// rests reports whether an object rests whose writes are slow.
func (f *facts) rests(d *decision) bool {
	due := f.history.rested()
	if !due.After(f.now) {
		return false
	}
	d.wait(Resting, due)
	return true
}

// disputed reports whether a repair waits, because somebody else keeps changing the object.
func (f *facts) disputed(d *decision) bool {
	if f.asked || f.after > readObject || f.history.wrote.IsZero() {
		return false
	}
	due := f.history.wrote.Add(repairPause(f.history.rewrites))
	if !due.After(f.now) {
		return false
	}
	d.wait(Disputed, due)
	return true
}

// used reports whether names that an item provides have to stay, because a proxy may have a route that uses one of them. The patience
// of the item bounds that, but for a route that is held, for one that proxies forget in a moment, and for one that stays as it is: an
// object that still exists keeps what that needs. An object that is no longer wanted does not, so that no cluster can keep others from
// ending what they provide.
func (f *facts) used(d *decision, names []name) bool {
	if len(names) == 0 {
		return false
	}
	use := f.view.use(names)
	switch {
	case use == held:
		d.kept, d.since = true, time.Time{}
		return true
	case f.patient(d):
		// What an earlier process has written is read in all clusters first.
		return use > unused || f.view.reading()
	}
	if f.phase == Kept && (use == coming || use == leaving) {
		d.since = f.now // what kept it has gone
		return true
	}
	d.kept = use == standing && f.content != nil
	return d.kept || use == leaving
}

// patient reports whether the item may wait for proxies (still).
func (f *facts) patient(d *decision) bool {
	return d.since.IsZero() || f.now.Sub(d.since) < f.place.limits.patience
}

// waitFor waits for what cannot be written, without which all requests that take the route would fail. That is a failure unless
// its cluster is connecting. The patience of the item begins when the obstacle has gone.
func (f *facts) waitFor(d *decision, o obstacle) {
	d.since = time.Time{}
	switch {
	case o.able:
		d.fail(snapshot.WriteFailed, obstructedMessage(o.object, o.name))
	case !o.silent:
		d.waitForProxies(f, NeedsCluster)
		return
	default:
		d.fail(snapshot.ClusterAwaited, awaitedMessage(o.object.Cluster, o.name))
	}
	d.wait(Obstructed, f.now.Add(clusterPause))
}

// waitForProxies waits for a moment or, because of a route that stays, for longer.
func (d *decision) waitForProxies(f *facts, p Phase) {
	if d.kept {
		d.wait(Kept, f.now.Add(clusterPause))
		return
	}
	if d.since.IsZero() {
		d.since = f.now
	}
	d.wait(p, f.now.Add(proxiesPause))
}

func (d *decision) wait(p Phase, again time.Time) { d.phase, d.again = p, again }

// fail says that the item cannot be written until something changes.
func (d *decision) fail(code snapshot.Code, message string) {
	d.phase, d.reason = Failing, snapshot.Reason{Code: code, What: message}
}

// failedTo is the message of a request that failed.
func failedTo(v verb, message string) string {
	if v == deleteObject {
		return "cannot be deleted: " + message
	}
	return message
}
