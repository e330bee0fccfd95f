package watch

import (
	"context"
	"errors"
	"log/slog"
	"net/http"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/rest"

	"github.com/meshctl/meshctl/engine/kube"
	"github.com/meshctl/meshctl/engine/mirror"
	"github.com/meshctl/meshctl/engine/relay"
	"github.com/meshctl/meshctl/engine/relay/relayv1"
	"github.com/meshctl/meshctl/engine/snapshot"
)

// Remote is a registered cluster that its agent reads: the lists and the mirror are replicas of the agent's. One stream at a time is
// between both. Its methods may be called from any goroutine.
type Remote struct {
	settings sessionSettings
	log      *slog.Logger
	// notify is called, without locks held, when the view may have changed.
	notify func()
	link   mirror.Link
	conn   *mirror.Connection
	lists  map[snapshot.Kind]*remoteList
	cancel context.CancelFunc

	// turn is held by who uses the receiver, and by who changes the link. It comes before mu.
	turn     sync.Mutex
	receiver *relay.Receiver
	// stream is the one that there is; nil if there is none.
	stream *RemoteStream

	mu sync.Mutex
	// connected: there is a stream, or one has just ended. overdue: what is here could not be compared for too long. state is what the
	// agent says of its cluster; nil before it has.
	connected, overdue bool
	state              *relayv1.ClusterState
	// settled is set once the cluster was read, or has a reason not to be.
	settled bool
	heardAt time.Time
	view    *snapshot.Cluster
	next    snapshot.Cluster
	dirty   bool
	// failures are the objects that cannot be processed, as of view.
	failures []snapshot.Failure
}

// remoteList is the objects of one kind of a Remote.
type remoteList struct {
	*store[snapshot.APIObject]
	// changed: the list is another than that of the view.
	changed atomic.Bool
}

// noAgent is the reason of a cluster whose agent was never here.
const noAgent = "its agent has not connected yet"

// newRemote prepares the state of a cluster to which requests are sent by a transport. The seed is what was known of it before.
func newRemote(seed *snapshot.Cluster, settings sessionSettings, transport http.RoundTripper, log *slog.Logger, notify func()) (*Remote, error) {
	r := &Remote{
		settings: settings, log: log.With("cluster", seed.Name), notify: notify, lists: map[snapshot.Kind]*remoteList{},
		next: *seed, dirty: true, cancel: func() {}, state: &relayv1.ClusterState{Reason: noAgent},
	}
	r.freeze()
	r.next.Cause, r.next.Reason, r.next.Reading, r.next.Credential = snapshot.AgentAway, noAgent, false, "" // what was known by a credential is not about the agent
	// What passes through the agent has no server of a known address; the name is for messages.
	config := &rest.Config{Host: "https://" + seed.Name + ".relay", Transport: transport}
	client, err := newClient(config, wireScheme(settings.scheme, snapshot.ManagedSide), runtime.ContentTypeJSON, kube.NewBudget(settings.bounds))
	if err != nil {
		return nil, err
	}
	r.conn = r.link.NewConnection(config, client, seed.Name, settings.plane)
	for _, read := range append(managedReads(settings.plane, seed.Name, settings.keep), managedRead{kind: snapshot.ConfigMap, strip: stripAs(stripConfigMap)}) {
		list := &remoteList{}
		list.store = newStore(nil, read.strip, func() { list.changed.Store(true) })
		list.hold = client.Hold
		r.lists[read.kind] = list
	}
	r.receiver = relay.NewReceiver(remoteStore{r}, relay.Reported()...)
	return r, nil
}

// run probes the cluster through its agent when a writer asks for it, until ctx ends.
func (r *Remote) run(ctx context.Context) {
	r.link.Begin()
	pulse := newPulse(r.conn, r.settings.probeInterval, r.settings.probeTimeout)
	defer pulse.stop()
	for pulse.wait(ctx, nil, nil) != ended {
		r.probed(pulse)
	}
}

// probed takes over what a probe has shown. What is known of the agent says more: why it does not answer, and that what it has is not
// compared yet.
func (r *Remote) probed(p *pulse) {
	r.turn.Lock()
	defer r.turn.Unlock()
	r.mu.Lock()
	now := r.next
	r.mu.Unlock()
	switch {
	case p.lost() && now.Sync != snapshot.Synced && !now.Reading:
		r.link.Lose(errors.New(now.Reason))
	case p.lost():
		r.link.Lose(p.err)
	case p.failures == 0 && now.Sync == snapshot.Synced:
		r.link.Resume(r.conn)
	}
}

// RemoteStream is a stream of the agent of a Remote.
type RemoteStream struct{ remote *Remote }

// Begin says that a stream of the agent begins, on which both speak a version of the protocol; the one before is of no more use.
func (r *Remote) Begin(protocol uint32) *RemoteStream {
	r.turn.Lock()
	defer r.turn.Unlock()
	r.stream = &RemoteStream{r}
	r.receiver.Begin(protocol)
	r.update(func() { r.connected, r.overdue, r.state = true, false, nil })
	return r.stream
}

// Overdue freezes the cluster if the agent has not said by now that all is here. Before, it stays as it was: a reconnection is not
// visible.
func (s *RemoteStream) Overdue() {
	r := s.remote
	r.turn.Lock()
	defer r.turn.Unlock()
	if r.stream == s {
		r.update(func() { r.overdue = true })
	}
}

// Lost freezes the cluster, because there was no stream after this one for a time.
func (s *RemoteStream) Lost(reason string) {
	r := s.remote
	r.turn.Lock()
	defer r.turn.Unlock()
	if r.stream == s {
		r.lose(reason)
	}
}

func (r *Remote) lose(reason string) {
	r.stream = nil
	r.update(func() {
		r.connected, r.state = false, &relayv1.ClusterState{Reason: reason}
	})
}

// Next is the next frame for the agent; nil if there is none.
func (s *RemoteStream) Next() *relayv1.Feedback {
	r := s.remote
	r.turn.Lock()
	defer r.turn.Unlock()
	if r.stream != s {
		return nil
	}
	return r.receiver.Next()
}

// errReplaced ends a stream after which another one has begun.
var errReplaced = errors.New("another stream of the same agent has begun")

// Receive takes a frame of the agent. An error means that the stream is of no more use.
func (s *RemoteStream) Receive(d *relayv1.Data) error {
	r := s.remote
	r.turn.Lock()
	defer r.turn.Unlock()
	if r.stream != s {
		return errReplaced
	}
	if d.GetBeat() != nil {
		return nil
	}
	if err := errors.Join(r.receiver.Receive(d), r.conn.Check()); err != nil {
		return err
	}
	r.update(func() {
		r.heardAt = time.Now()
		if state := d.GetCluster(); state != nil {
			r.state = state
			r.takeState()
		} else if r.state != nil && (d.GetComplete() != nil || d.GetSame() != nil) {
			r.takeState() // which kinds the agent knows
		}
	})
	return nil
}

// Compared reports whether everything that the agent has is here, or the stream is of no more use.
func (s *RemoteStream) Compared() bool {
	r := s.remote
	r.turn.Lock()
	defer r.turn.Unlock()
	_, complete := r.receiver.Complete(r.notWaitedFor)
	return r.stream != s || complete
}

// takeState takes over what the agent says of kinds and objects, under the lock.
func (r *Remote) takeState() {
	r.next.Denied = nil
	for _, name := range r.state.GetDenied() {
		if k, known := relay.KindNamed(name); known {
			r.next.Denied = append(r.next.Denied, k)
		}
		if k, known := relay.WrittenNamed(name); known {
			r.conn.Refuse(k, "the agent's account may not list it")
		}
	}
	r.next.Unsent = nil
	for _, name := range r.receiver.Unknown() {
		if k, known := relay.KindNamed(name); known {
			r.next.Unsent = append(r.next.Unsent, k)
		}
		if k, known := relay.WrittenNamed(name); known {
			r.conn.Refuse(k, "the agent is older than the kind, and does not send it")
		}
	}
	slices.Sort(r.next.Unsent)
	r.next.Denied = append(r.next.Denied, r.next.Unsent...)
	slices.Sort(r.next.Denied)
	for _, name := range r.state.GetAbsent() {
		if k, known := relay.WrittenNamed(name); known {
			r.conn.Absent(k)
		}
	}
	r.next.Unread = nil
	for _, u := range r.state.GetUnread() {
		if k, known := relay.KindNamed(u.GetKind()); known {
			ref := snapshot.Ref{Kind: k, Cluster: r.next.Name, Namespace: u.GetName().GetNamespace(), Name: u.GetName().GetName()}
			r.next.Unread = append(r.next.Unread, snapshot.Unread{Ref: ref, Denied: u.GetDenied(), Reason: relay.Text(u.GetReason())})
		}
	}
	slices.SortFunc(r.next.Unread, func(a, b snapshot.Unread) int { return a.Ref.Compare(b.Ref) })
}

// notWaitedFor reports whether the agent cannot know all objects of a kind.
func (r *Remote) notWaitedFor(kind string) bool {
	return slices.Contains(r.state.GetDenied(), kind) || slices.Contains(r.state.GetAbsent(), kind)
}

// update changes the state, and what follows from it, with turn held.
func (r *Remote) update(f func()) {
	r.mu.Lock()
	before := r.next
	f()
	r.dirty = true
	_, complete := r.receiver.Complete(r.notWaitedFor)
	reading := r.state == nil || r.state.GetReading() || r.state.GetSynced()
	switch {
	case r.connected && r.state.GetSynced() && complete:
		r.next.Sync, r.next.Cause, r.next.Reason, r.next.Reading, r.settled, r.overdue = snapshot.Synced, "", "", false, true, false
	case r.connected && reading && r.next.Sync == snapshot.Synced && !r.overdue:
	case r.connected && reading:
		r.freeze()
		r.next.SetReading()
	default:
		r.freeze()
		r.settled, r.next.Cause, r.next.Reason, r.next.Reading = true, snapshot.AgentAway, relay.Text(r.state.GetReason()), false
		if r.connected {
			r.next.Cause = snapshot.ServerUnanswered // its agent says so
		}
	}
	now := r.next
	if r.settled && (now.Sync != before.Sync || now.Reason != before.Reason) {
		logSync(r.log, now)
	}
	r.mu.Unlock()
	switch state := r.link.State(); {
	case now.Sync != snapshot.Synced && now.Reason != before.Reason && !now.Reading:
		r.link.Lose(errors.New(now.Reason))
	case now.Sync == snapshot.Synced && (before.Sync != snapshot.Synced || state.Conn == nil):
		r.link.Use(r.conn)
	}
	r.notify()
}

// freeze keeps the lists as they are.
func (r *Remote) freeze() {
	if r.next.Sync == snapshot.Synced {
		r.next.Sync = snapshot.Stale
	}
}

// remoteStore takes over what the receiver of a Remote received.
type remoteStore struct{ *Remote }

// Take implements relay.Store.
func (s remoteStore) Take(kind string, puts []relay.Object, removals []relay.Key) map[relay.Key]error {
	rejected := map[relay.Key]error{}
	if k, known := relay.WrittenNamed(kind); known {
		for _, put := range puts {
			written, err := relay.DecodeWritten(put.Bytes)
			if err != nil {
				rejected[put.Key] = err
				continue
			}
			s.conn.Follow(mirror.ID{Kind: k, Namespace: put.Key.Namespace, Name: put.Key.Name}, written)
		}
		return rejected // what is gone is told by Complete, which says up to which version
	}
	k, _ := relay.KindNamed(kind)
	list := s.lists[k]
	for _, put := range puts {
		o, err := relay.Decode(k, put.Key, put.Bytes)
		e := event[snapshot.APIObject]{key: key{put.Key.Namespace, put.Key.Name}, err: err}
		if err == nil {
			e, err = list.eventOf(o)
		}
		if list.handle(e); err != nil || e.err != nil {
			rejected[put.Key] = errors.Join(err, e.err)
		}
	}
	for _, of := range removals {
		list.handle(event[snapshot.APIObject]{key: key{of.Namespace, of.Name}})
	}
	return rejected
}

// Complete implements relay.Store.
func (s remoteStore) Complete(kind string, version uint64, held func(relay.Key) bool) {
	if k, known := relay.WrittenNamed(kind); known {
		s.conn.FollowAll(k, version, func(of mirror.ID) bool { return held(relay.Key{Namespace: of.Namespace, Name: of.Name}) })
	}
}

// current implements registered.
func (r *Remote) current() (*snapshot.Cluster, []snapshot.Failure) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if !r.dirty {
		return r.view, r.failures
	}
	r.dirty = false
	if r.next.Sync == snapshot.Synced {
		r.copyLists()
	}
	if r.view == nil || !sameView(r.view, &r.next) {
		view := r.next
		r.view = &view
	}
	return r.view, r.failures
}

// copyLists puts the lists that changed into next. While the cluster is frozen, they stay as they were.
func (r *Remote) copyLists() {
	r.failures = nil
	for kind, list := range r.lists {
		r.failures = append(r.failures, list.unprocessed(kind, r.next.Name)...)
		if !list.changed.Swap(false) {
			continue
		}
		// All objects are of the type of the list, by Decode.
		if err := r.next.List(kind).Set(list.list()); err != nil {
			r.log.Error("the list cannot be used; this is a bug in meshctl, please report it", "kind", kind.String(), "error", err)
		}
	}
	for _, p := range r.state.GetProblems() {
		if k, known := relay.KindNamed(p.GetKind()); known {
			ref := snapshot.Ref{Kind: k, Cluster: r.next.Name, Namespace: p.GetName().GetNamespace(), Name: p.GetName().GetName()}
			r.failures = append(r.failures, snapshot.Failure{
				// An agent says of an object that it cannot be processed, and nothing else of its cluster.
				Ref: ref, Reason: snapshot.Reason{Code: snapshot.ObjectUnreadable, What: relay.Text(p.GetWhat()), Hint: relay.Text(p.GetHint())}, Parents: []snapshot.Ref{ref},
			})
		}
	}
}

// sameView reports whether two views of a cluster are the same, by the identity of their lists.
func sameView(a, b *snapshot.Cluster) bool {
	if a.Domain != b.Domain || a.Sync != b.Sync || a.Reason != b.Reason || a.Credential != b.Credential || a.Reading != b.Reading || a.Relay != b.Relay ||
		!slices.Equal(a.Denied, b.Denied) || !slices.Equal(a.Unsent, b.Unsent) || !slices.Equal(a.Unread, b.Unread) {
		return false
	}
	for kind, list := range a.Lists {
		if !list.Same(b.List(kind)) {
			return false
		}
	}
	return true
}

func (r *Remote) isSettled() bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.settled
}

func (r *Remote) heard() time.Time {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.heardAt
}

// counts implements registered: the agent counts.
func (r *Remote) counts() (silences, collected int64) { return 0, 0 }

// Config sends requests to the cluster through its agent; always the same pointer.
func (r *Remote) Config() *rest.Config { return r.conn.Config }

func (r *Remote) writers() *mirror.Link { return &r.link }

// renewed implements registered: the agent has its own credential.
func (r *Remote) renewed() {}

func (r *Remote) setCredential(string) {}

func (r *Remote) setDomain(domain string) {
	r.turn.Lock()
	defer r.turn.Unlock()
	r.update(func() { r.next.Domain = domain })
}

func (r *Remote) setUnusable(domain string, _ snapshot.Code, reason string) {
	r.turn.Lock()
	defer r.turn.Unlock()
	r.next.Domain = domain
	r.lose(reason)
}

func (r *Remote) stop() {
	r.cancel()
	r.link.Reset()
}
