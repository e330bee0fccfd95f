package agent

import (
	"fmt"
	"log/slog"
	"sync"

	"github.com/meshctl/meshctl/engine/mirror"
	"github.com/meshctl/meshctl/engine/relay"
	"github.com/meshctl/meshctl/engine/relay/pump"
	"github.com/meshctl/meshctl/engine/relay/relayv1"
	"github.com/meshctl/meshctl/engine/snapshot"
	"github.com/meshctl/meshctl/engine/watch"
)

// replica is what an agent reports of its cluster. It outlives streams: what the hub has is compared with each new one.
type replica struct {
	local *watch.Local
	log   *slog.Logger
	// signal is signalled when next may return something.
	signal chan struct{}

	mu     sync.Mutex
	sender *relay.Sender
	// view is the cluster as the sender has it, and failures those of view.
	view     *snapshot.Cluster
	failures []snapshot.Failure
	// conn is the mirror as the sender has it.
	conn *mirror.Connection
	// written are objects of the mirror that changed, and relisted that a kind is complete now, or not any more.
	written  map[mirror.ID]bool
	relisted bool
	// due: what there is to be said beside the objects is to be sent.
	due bool
	// large is how many objects are said to be too large.
	large int
}

func newReplica(local *watch.Local, log *slog.Logger) *replica {
	r := &replica{local: local, log: log, signal: make(chan struct{}, 1), view: &snapshot.Cluster{}, written: map[mirror.ID]bool{}}
	r.sender = relay.NewSender(r, relay.Reported()...)
	local.Link().Listen(r)
	return r
}

// begin starts with a new stream.
func (r *replica) begin() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.sender.Begin()
	r.due = true
}

// progress is how much the hub has acknowledged, and what it is to acknowledge next.
func (r *replica) progress() (uint64, string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.sender.Progress()
}

// receive takes a frame of the hub.
func (r *replica) receive(f *relayv1.Feedback) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	pump.Signal(r.signal)
	return r.sender.Receive(f)
}

// next is the next frame for the hub.
func (r *replica) next() (*relayv1.Data, bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.look()
	if r.due {
		r.due = false
		return &relayv1.Data{Frame: &relayv1.Data_Cluster{Cluster: r.state()}}, true
	}
	frame := r.sender.Next()
	if large := len(r.tooLarge()); large != r.large {
		r.large, r.due = large, true
		pump.Signal(r.signal)
	}
	return frame, frame != nil
}

// tooLarge are the objects that cannot be sent.
func (r *replica) tooLarge() (out []*relayv1.Problem) {
	r.sender.Large(func(kind string, of relay.Key, size int) {
		out = append(out, &relayv1.Problem{
			Kind: kind, Name: &relayv1.Name{Namespace: of.Namespace, Name: of.Name}, Code: string(snapshot.ObjectUnreadable),
			What: fmt.Sprintf("it has %d bytes, and %d is the most that an agent passes on; it is used as it was before, or ignored", size, relay.MaxObject),
		})
	})
	return out
}

// look tells the sender what changed, under the lock.
func (r *replica) look() {
	if now, failures := r.local.Cluster(); now != r.view || !snapshot.SameSlice(failures, r.failures) {
		for kind, list := range now.Lists {
			if before := r.view.List(kind); !list.Same(before) {
				r.sender.Changed(relay.KindName(kind), differing(before, list)...)
			}
			r.sender.SetComplete(relay.KindName(kind), now.Sync == snapshot.Synced)
		}
		r.view, r.failures, r.due = now, failures, true
	}
	r.lookAtWritten()
}

// lookAtWritten tells the sender what changed in the mirror, under the lock.
func (r *replica) lookAtWritten() {
	conn := r.local.Link().State().Conn
	if conn == nil {
		return
	}
	if conn != r.conn {
		// What the mirror before had is gone, or in this one.
		if r.conn != nil {
			for of := range r.conn.All() {
				r.written[of] = true
			}
		}
		for of := range conn.All() {
			r.written[of] = true
		}
		r.conn, r.relisted = conn, true
	}
	for of := range r.written {
		r.sender.Changed(relay.WrittenName(of.Kind), relay.Key{Namespace: of.Namespace, Name: of.Name})
	}
	clear(r.written)
	if r.relisted {
		r.relisted, r.due = false, true
		for _, kind := range snapshot.Kinds(snapshot.ManagedSide, snapshot.Write|snapshot.InClusters) {
			r.sender.SetComplete(relay.WrittenName(kind), conn.State(kind).Complete())
		}
	}
}

// differing are the names of what is not the same object in two lists, which are ascending.
func differing(before, after snapshot.ObjectList) []relay.Key {
	var out []relay.Key
	note := func(o snapshot.APIObject) {
		out = append(out, relay.Key{Namespace: o.GetNamespace(), Name: o.GetName()})
	}
	i, j := 0, 0
	for i < before.Len() && j < after.Len() {
		a, b := before.At(i), after.At(j)
		switch order := snapshot.CompareNames(a, b); {
		case order < 0:
			note(a)
			i++
		case order > 0:
			note(b)
			j++
		default:
			if a != b {
				note(b)
			}
			i++
			j++
		}
	}
	for ; i < before.Len(); i++ {
		note(before.At(i))
	}
	for ; j < after.Len(); j++ {
		note(after.At(j))
	}
	return out
}

// Object implements relay.Contents.
func (r *replica) Object(name string, of relay.Key) ([]byte, bool) {
	if kind, written := relay.WrittenNamed(name); written {
		if r.conn == nil {
			return nil, false
		}
		o, exists := r.conn.Find(mirror.ID{Kind: kind, Namespace: of.Namespace, Name: of.Name})
		if !exists {
			return nil, false
		}
		raw, err := relay.EncodeWritten(o)
		return raw, err == nil
	}
	kind, _ := relay.KindNamed(name)
	o := r.view.List(kind).Find(of.Namespace, of.Name)
	if o == nil {
		return nil, false
	}
	raw, err := relay.Encode(o)
	return raw, err == nil // state says of one that cannot be sent that it is not
}

// Version implements relay.Contents.
func (r *replica) Version(name string) uint64 {
	if kind, written := relay.WrittenNamed(name); written && r.conn != nil {
		return r.conn.Seen(kind)
	}
	return 0
}

// state is what there is to be said of the cluster beside its objects.
func (r *replica) state() *relayv1.ClusterState {
	s := &relayv1.ClusterState{Synced: r.view.Sync == snapshot.Synced, Reading: r.view.Reading, Reason: r.view.Reason}
	for _, kind := range r.view.Denied {
		s.Denied = append(s.Denied, relay.KindName(kind))
	}
	if r.conn != nil {
		for _, kind := range snapshot.Kinds(snapshot.ManagedSide, snapshot.Write|snapshot.InClusters) {
			switch state := r.conn.State(kind); {
			case state.Absent:
				s.Absent = append(s.Absent, relay.WrittenName(kind))
			case state.Refused != "":
				s.Denied = append(s.Denied, relay.WrittenName(kind))
			}
		}
	}
	for _, u := range r.view.Unread {
		s.Unread = append(s.Unread, &relayv1.Unread{Kind: relay.KindName(u.Ref.Kind), Name: nameOf(u.Ref), Denied: u.Denied, Reason: u.Reason})
	}
	for _, f := range r.failures {
		s.Problems = append(s.Problems, &relayv1.Problem{Kind: relay.KindName(f.Ref.Kind), Name: nameOf(f.Ref), Code: string(f.Code), What: f.What, Hint: f.Hint})
	}
	s.Problems = append(s.Problems, r.tooLarge()...)
	return s
}

func nameOf(r snapshot.Ref) *relayv1.Name { return &relayv1.Name{Namespace: r.Namespace, Name: r.Name} }

// Turned implements mirror.Listener.
func (r *replica) Turned() { pump.Signal(r.signal) }

// Changed implements mirror.Listener.
func (r *replica) Changed(_ *mirror.Connection, objects []mirror.ID) {
	r.mu.Lock()
	for _, of := range objects {
		r.written[of] = true
	}
	r.mu.Unlock()
	pump.Signal(r.signal)
}

// Relisted implements mirror.Listener.
func (r *replica) Relisted(conn *mirror.Connection, kind snapshot.Kind) {
	r.mu.Lock()
	r.relisted = true
	for of := range conn.All() {
		if of.Kind == kind {
			r.written[of] = true
		}
	}
	r.mu.Unlock()
	pump.Signal(r.signal)
}

// Incomparable implements mirror.Listener.
func (r *replica) Incomparable(of mirror.ID, err error) {
	r.log.Error("object cannot be compared with what is wanted", "object", of.Ref("").String(), "error", err)
}
