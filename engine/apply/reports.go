package apply

import (
	"slices"

	"github.com/meshctl/meshctl/engine/mirror"
	"github.com/meshctl/meshctl/engine/snapshot"
)

// reports are what is reported of one cluster: its failures, and what was done there. The cluster's lock guards them.
type reports struct {
	*shared
	cluster string
	// objects are the failures of objects; whole, those of the cluster as a whole, zero where there is none.
	objects map[mirror.ID]objectFailure
	whole   [numSubjects]snapshot.Failure
	changes changes
	gauges  gauges
}

// objectFailure is the failure of an object, and whom the ledger knows to have it.
type objectFailure struct {
	snapshot.Failure
	party *party
}

// subject is what a failure of a cluster as a whole is about.
type subject uint8

const (
	// ofConnection: nothing can be written.
	ofConnection subject = iota
	// ofUnwritten: policies ask for what is not written until the cluster answers.
	ofUnwritten
	// ofDeletions: so much would go that nothing is deleted.
	ofDeletions
	// ofPlanes: another management plane writes, too.
	ofPlanes
	// ofWaiting: objects stay different from what is wanted for long.
	ofWaiting

	numSubjects = iota
)

func newReports(s *shared, cluster string) reports {
	return reports{
		shared: s, cluster: cluster, objects: map[mirror.ID]objectFailure{},
		changes: changes{cluster: cluster, metrics: s.metrics, log: s.Log}, gauges: s.metrics.gauges(cluster),
	}
}

// fail records the failure of an object, and reports it if it is new.
func (r *reports) fail(i *item, reason snapshot.Reason) {
	known, failed := r.objects[i.id]
	if !failed {
		r.ledger.refuses(&i.party, true)
	}
	if failed && known.What == reason.What && known.Code == reason.Code {
		return
	}
	f := objectFailure{snapshot.Failure{Ref: i.id.Ref(r.cluster), Reason: reason, Parents: i.parents()}, &i.party}
	r.objects[i.id] = f
	r.changes.failed(&f.Failure)
	r.notifyFailures()
}

// inherit keeps the failure of an item whose content has changed until the new one
// is tried, which may be later; it is that of the policies of the new one.
func (r *reports) inherit(i *item) {
	if f, failed := r.objects[i.id]; failed && !slices.Equal(f.Parents, i.parents()) {
		f.Parents = i.parents()
		r.objects[i.id] = f
		r.notifyFailures()
	}
}

// clear removes the failure of an object.
func (r *reports) clear(of mirror.ID) {
	if f, failed := r.objects[of]; failed {
		delete(r.objects, of)
		r.ledger.refuses(f.party, false)
		r.notifyFailures()
	}
}

// clearAll removes all failures of objects and some of the cluster, and says so in any case: others may have gone, too.
func (r *reports) clearAll(about ...subject) {
	for of := range r.objects {
		r.clear(of)
	}
	for _, s := range about {
		r.whole[s] = snapshot.Failure{}
	}
	r.notifyFailures()
}

// set records a failure of the cluster as a whole, for some policies; no reason is that there is none. It reports whether that is
// new.
func (r *reports) set(about subject, reason snapshot.Reason, parents ...snapshot.Ref) bool {
	is := &r.whole[about]
	if is.Reason == reason && slices.Equal(is.Parents, parents) {
		return false
	}
	*is = snapshot.Failure{}
	if reason.Code != "" {
		ref := snapshot.Ref{Kind: snapshot.KubernetesCluster, Namespace: r.Namespace, Name: r.cluster}
		*is = snapshot.Failure{Ref: ref, Reason: reason, Parents: parents}
	}
	r.notifyFailures()
	return true
}

// has reports whether there is a failure of the cluster as a whole.
func (r *reports) has(about subject) bool { return r.whole[about].Code != "" }

// appendTo appends all failures, in no order.
func (r *reports) appendTo(out []snapshot.Failure) []snapshot.Failure {
	for about, f := range r.whole {
		switch {
		case subject(about) == ofUnwritten && r.has(ofConnection), f.Code == "":
			continue // the failure of the connection is that of the same policies
		case subject(about) == ofConnection:
			f.Parents = r.whole[ofUnwritten].Parents
		}
		out = append(out, f)
	}
	for _, f := range r.objects {
		out = append(out, f.Failure)
	}
	return out
}
