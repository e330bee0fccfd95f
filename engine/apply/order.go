package apply

import (
	"slices"
	"time"

	"github.com/meshctl/meshctl/engine/mirror"
	"github.com/meshctl/meshctl/engine/snapshot"
)

// tracker keeps the items of one cluster and the ledger in step. The cluster's lock guards it.
type tracker struct {
	*shared
	// reach is what the ledger knows of the cluster.
	reach reach
	// told is what it was told last.
	told access
	// unread are the objects of earlier processes to be read: proxies use what they have.
	unread map[mirror.ID]bool
	// witness is told what stands, if it is not nil; settled: that it is all.
	witness Witness
	settled bool
}

func newTracker(s *shared, cluster string) tracker {
	t := tracker{shared: s, reach: reach{cluster: cluster}, unread: map[mirror.ID]bool{}}
	if s.Witness != nil {
		t.witness = s.Witness(cluster)
	}
	return t
}

// set notes what an object is like; nil if it is gone.
func (t *tracker) set(i *item, as *content) {
	i.current = as
	switch {
	case t.witness == nil:
		return
	case as == nil:
		t.witness.Stands(i.id, nil)
	default:
		of, cluster := i.id, t.reach.cluster
		t.witness.Stands(of, func() ([]byte, error) { return objectBody(of, "", as, cluster, t.plane()) })
	}
	t.settled = false
}

// settle tells the witness, once, that there is nothing left to write.
func (t *tracker) settle(idle bool) {
	if t.witness != nil && idle && !t.settled {
		t.settled = true
		t.witness.Settled()
	}
}

// reached says whether the cluster can be written to.
func (t *tracker) reached(is access) {
	if is != t.told {
		t.told = is
		t.ledger.reached(&t.reach, is)
	}
}

// announce enters what an object will provide.
func (t *tracker) announce(i *item, o *snapshot.Content) {
	t.ledger.announce(&i.party, without((&content{Content: o}).provides(t.reach.cluster), i.provides()))
}

// want sets what is wanted for an item.
func (t *tracker) want(i *item, o *snapshot.Object, made *content) {
	cluster := t.reach.cluster
	t.ledger.announce(&i.party, without(made.provides(cluster), i.provides()))
	t.ledger.retract(&i.party, without(i.content.provides(cluster), made.provides(cluster)))
	t.ledger.intend(&i.party, i.content.needs(cluster), made.needs(cluster), i.current.needs(cluster), i.sending.needs(cluster))
	t.obstruct(i, false)
	i.put(o, made, time.Now())
}

// unwant says that no object is wanted for an item.
func (t *tracker) unwant(i *item) {
	cluster := t.reach.cluster
	t.ledger.retract(&i.party, i.content.provides(cluster))
	t.ledger.intend(&i.party, i.content.needs(cluster), nil, i.current.needs(cluster), i.sending.needs(cluster))
	i.content, i.wide = nil, nil
	i.history.since = time.Time{}
	t.obstruct(i, false)
}

// obstruct enters whether there is an obstacle to what is wanted.
func (t *tracker) obstruct(i *item, obstructed bool) {
	if i.history.obstructed != obstructed {
		i.history.obstructed = obstructed
		t.ledger.holds(&i.party, obstructed)
	}
}

// provides are the names that the object provides, whatever becomes of a request that is on its way.
func (i *item) provides() []name {
	cluster := i.cluster.cluster
	names := i.current.provides(cluster)
	if i.sending == nil {
		return names
	}
	sent := i.sending.provides(cluster)
	return slices.DeleteFunc(names, func(n name) bool { return !contains(sent, n) })
}

// send enters what a request changes an object to.
func (i *item) send(s step) {
	switch {
	case i.cluster.cluster == "" || i.id.Kind.Info().Effect&snapshot.Relates == 0:
	case s.verb == writeObject:
		i.sending = s.content
	case s.verb == deleteObject:
		i.sending = &content{Content: &snapshot.Content{}}
	}
}

// requestAnswered says that it is known what became of a request: it is what is current.
func (t *tracker) requestAnswered(i *item) {
	if sending := i.sending; sending != nil {
		i.sending = nil
		cluster := t.reach.cluster
		t.ledger.intend(&i.party, sending.needs(cluster), i.content.needs(cluster), i.current.needs(cluster))
	}
}

// wrote says that a request made an object as a content has it; nil deleted it. Changed is false if it was like that.
func (t *tracker) wrote(i *item, as *content, changed bool, took time.Duration) {
	t.ledger.wrote(&i.party, i.current, as, changed, took)
	t.set(i, as)
	t.requestAnswered(i)
}

// observe says that an object is as a content has it.
func (t *tracker) observe(i *item, as *content) {
	defer t.requestAnswered(i)
	if i.current != as {
		t.ledger.wrote(&i.party, i.current, as, i.sending != nil, 0)
		t.set(i, as)
		if as != i.wide {
			i.wide = nil // it has what another one provides
		}
	}
}

// widened is the wanted content of an item with what the current one provides; nil if no content has both.
func (t *tracker) widened(i *item) *content {
	if i.wide == nil {
		spec := t.Widen(i.id.Kind, i.current.Spec, i.content.Spec)
		if spec == nil {
			return nil
		}
		wide := *i.content.Content
		wide.Spec = spec
		relations := i.content.relations().With(*i.current.relations())
		i.wide = &content{Content: &wide, named: &relations}
	}
	return i.wide
}

// noteUnread enters that an object is to be read, because an earlier process may have written it
// and proxies use what it has. The item is nil if the object is not wanted.
func (t *tracker) noteUnread(i *item, of mirror.ID, l mirror.Object) {
	if t.reach.cluster == "" || of.Kind.Info().Effect&snapshot.Relates == 0 {
		return
	}
	if l.Ours() && l.Here && !l.Going && (i == nil || i.current == nil) {
		t.unread[of] = true
	}
}

// observeRead enters what was read of an object that an earlier process has written: proxies use what it has.
func (t *tracker) observeRead(i *item, r response) {
	if r.err != nil {
		// It may be gone, or the server does not answer: a write will tell.
		t.Log.Debug("object cannot be read before it is changed", "object", i.id.Ref(t.reach.cluster).String(), "error", r.err)
		return
	}
	t.observe(i, r.read)
}
