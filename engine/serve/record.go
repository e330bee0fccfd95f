package serve

import (
	"cmp"
	"context"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	eventsv1 "k8s.io/api/events/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	eventsclient "k8s.io/client-go/kubernetes/typed/events/v1"

	"github.com/meshctl/meshctl/engine/apply"
	"github.com/meshctl/meshctl/engine/kube"
	"github.com/meshctl/meshctl/engine/snapshot"
)

const (
	// reporter is the reportingController of all Events that are written.
	reporter = "meshctl"
	// maxNote is how long a note of an Event may be, in bytes.
	maxNote = 1024
	// maxPending bounds the Events that wait to be written; those beyond are
	// counted and left out.
	maxPending = 256
	// gatherTime is how long changes are collected before they are recorded: Events
	// must not delay the writes that they report, and repeated edits of a policy
	// become one Event.
	gatherTime = time.Second
	// recordPause is the pause between two Events: ten a second at most.
	recordPause = 100 * time.Millisecond
	// recordTimeout bounds one write.
	recordTimeout = 5 * time.Second
)

// recorder reports in Events on the management cluster what was written where,
// and because of which policy: one Event for each policy, cluster and action, for
// any number of objects; and which objects are no longer ready (recordstates.go). Events that cannot be written are dropped: nothing waits
// for them.
type recorder struct {
	events   eventsclient.EventsV1Interface
	instance string
	// namespace is that of the management plane; Events about it report what no
	// policy caused.
	namespace string
	state     func() *snapshot.State
	log       *slog.Logger

	mu      sync.Mutex
	pending []*pendingEvent
	dropped int
	wake    chan struct{}
	// loggedReason is the last reason that was logged.
	loggedReason string
}

// pendingEvent is an Event that is not written yet.
type pendingEvent struct {
	// cause is the policy; zero if there is none.
	cause   snapshot.Ref
	cluster string
	action  action
	// objects are those to which the same was done: of "VirtualService created", the first ones.
	objects map[what]*named
	// message is that of the first failure, or says what state the object is in.
	message string
	// reason and kind are those of the Event of a change of state; empty for what was written.
	reason, kind string
	// waited is the longest time that a write waited for proxies.
	waited time.Duration
	at     time.Time
}

// action is the action of an Event.
type action string

const (
	applied action = "Applied"
	deleted action = "Deleted"
	failed  action = "Failed"
	// stateChanged: the object is no longer ready, or is again.
	stateChanged action = "StateChanged"
)

// newRecorder prepares a recorder without I/O. State is the latest
// translation, or nil.
func newRecorder(o Options, state func() *snapshot.State) (*recorder, error) {
	client, err := kube.NewClientset(o.Management)
	if err != nil {
		return nil, fmt.Errorf("recording of events: building a client: %w", err)
	}
	return &recorder{
		events: client.EventsV1(), instance: o.identity, namespace: o.Namespace, state: state, log: o.Log, wake: make(chan struct{}, 1),
	}, nil
}

// record adds what was done in one cluster.
func (r *recorder) record(set apply.ChangeSet) {
	if !set.Changed() {
		return
	}
	r.mu.Lock()
	for _, c := range set.Changes {
		if c.Action == apply.StatusWritten {
			continue
		}
		parents := c.Parents
		if len(parents) == 0 {
			parents = []snapshot.Ref{{}}
		}
		for _, parent := range parents {
			r.add(parent, set.Cluster, c)
		}
	}
	r.mu.Unlock()
	select {
	case r.wake <- struct{}{}:
	default:
	}
}

// add adds a change to what is pending.
func (r *recorder) add(cause snapshot.Ref, cluster string, c apply.Change) {
	kind := map[apply.Action]action{apply.Deleted: deleted, apply.Failed: failed}[c.Action]
	kind = cmp.Or(kind, applied)
	at := slices.IndexFunc(r.pending, func(h *pendingEvent) bool {
		return h.cause == cause && h.cluster == cluster && h.action == kind
	})
	if at < 0 {
		if len(r.pending) == maxPending {
			r.dropped++
			return
		}
		at = len(r.pending)
		r.pending = append(r.pending, &pendingEvent{cause: cause, cluster: cluster, action: kind, objects: map[what]*named{}})
	}
	h := r.pending[at]
	h.at = c.Time
	h.waited = max(h.waited, c.Waited)
	done := what{c.Ref.Kind, c.Action}
	if h.objects[done] == nil {
		h.objects[done] = &named{}
	}
	h.objects[done].add(c.Ref)
	if h.message == "" && c.Action == apply.Failed {
		h.message = c.Ref.String() + ": " + c.Message
	}
}

// run writes Events until ctx ends.
func (r *recorder) run(ctx context.Context) {
	for {
		select {
		case <-ctx.Done():
			return
		case <-r.wake:
		}
		if !sleep(ctx, gatherTime) {
			return
		}
		for h := r.take(); h != nil; h = r.take() {
			r.logError(r.write(ctx, h))
			if !sleep(ctx, recordPause) {
				return
			}
		}
	}
}

// take returns the next to be written; nil if there is none.
func (r *recorder) take() *pendingEvent {
	r.mu.Lock()
	defer r.mu.Unlock()
	if len(r.pending) == 0 {
		if r.dropped > 0 {
			r.log.Warn("some events were dropped because too many were waiting; the metrics count all writes", "dropped", r.dropped)
			r.dropped = 0
		}
		return nil
	}
	h := r.pending[0]
	r.pending = r.pending[1:]
	return h
}

func (r *recorder) write(ctx context.Context, h *pendingEvent) error {
	ctx, cancel := context.WithTimeout(ctx, recordTimeout)
	defer cancel()
	event := r.event(h)
	_, err := r.events.Events(event.Namespace).Create(ctx, event, metav1.CreateOptions{})
	if err != nil {
		return fmt.Errorf("event of %s: %w", event.Regarding.Name, err)
	}
	return nil
}

// logError logs why Events cannot be written, once for each reason.
func (r *recorder) logError(err error) {
	reason := ""
	if err != nil {
		reason = cmp.Or(string(apierrors.ReasonForError(err)), "unreachable")
	}
	if reason != "" && reason != r.loggedReason {
		r.log.Warn("events cannot be written; nothing else is affected; `meshctl serve` needs the permission to create events.events.k8s.io in the management cluster", "error", err)
	}
	r.loggedReason = reason
}

func (r *recorder) event(h *pendingEvent) *eventsv1.Event {
	regarding := r.regarding(h.cause)
	e := &eventsv1.Event{
		ObjectMeta:          metav1.ObjectMeta{Namespace: regarding.Namespace, GenerateName: name(regarding.Name)},
		EventTime:           metav1.NewMicroTime(h.at),
		ReportingController: reporter, ReportingInstance: r.instance,
		Action: string(h.action), Reason: string(h.action), Type: corev1.EventTypeNormal,
		Regarding: regarding, Note: h.text(),
	}
	if h.action == failed {
		e.Type = corev1.EventTypeWarning
	}
	if h.action == stateChanged {
		e.Reason, e.Type, e.Note = h.reason, h.kind, note(h.message)
	}
	if h.cluster != "" {
		related := r.regarding(snapshot.Ref{Kind: snapshot.KubernetesCluster, Namespace: r.namespace, Name: h.cluster})
		e.Related = &related
	}
	return e
}

// maxName leaves room for the suffix that makes the name unique.
const maxName = 200

func name(of string) string { return strings.TrimRight(of[:min(len(of), maxName)], ".-") + "-" }

// regarding refers to an object, with its UID if known: kubectl finds Events by it.
func (r *recorder) regarding(ref snapshot.Ref) corev1.ObjectReference {
	if ref == (snapshot.Ref{}) {
		return corev1.ObjectReference{APIVersion: "v1", Kind: "Namespace", Namespace: r.namespace, Name: r.namespace}
	}
	if ref.Cluster != "" { // Events are in the management cluster
		ref = snapshot.Ref{Kind: snapshot.KubernetesCluster, Namespace: r.namespace, Name: ref.Cluster}
	}
	out := corev1.ObjectReference{
		APIVersion: ref.Kind.Info().GroupVersion().String(), Kind: ref.Kind.String(), Namespace: ref.Namespace, Name: ref.Name,
	}
	if state := r.state(); state != nil {
		if o := state.Input.Find(ref); o != nil {
			out.UID = o.GetUID()
		}
	}
	return out
}

// what was done to objects of a kind.
type what struct {
	kind   snapshot.Kind
	action apply.Action
}

// named are some objects of one kind, of which the first few are named.
type named struct {
	n     int
	first []string
}

// maxNamed bounds the names in an Event, which has little room.
const maxNamed = 3

func (n *named) add(ref snapshot.Ref) {
	if n.n++; n.n <= maxNamed {
		n.first = append(n.first, strings.TrimPrefix(ref.Namespace+"/"+ref.Name, "/"))
	}
}

// text names one object, or counts several: "2 VirtualService created (shop/cart, shop/web)".
func (n *named) text(done what) string {
	if n.n == 1 {
		return done.kind.String() + " " + n.first[0] + " " + string(done.action)
	}
	names := strings.Join(n.first, ", ")
	if more := n.n - len(n.first); more > 0 {
		names += fmt.Sprintf(" and %d more", more)
	}
	return fmt.Sprintf("%d %s %s (%s)", n.n, done.kind, done.action, names)
}

// text says what was done, such as "cluster-1: VirtualService shop/cart created".
func (h *pendingEvent) text() string {
	where := cmp.Or(h.cluster, "management cluster")
	var parts []string
	for done, objects := range h.objects {
		parts = append(parts, objects.text(done))
	}
	slices.Sort(parts)
	text := where + ": " + strings.Join(parts, ", ")
	if h.waited > 0 {
		text += fmt.Sprintf("; waited %.1f s for proxies", h.waited.Seconds())
	}
	if h.message != "" {
		text += "; " + h.message
	}
	return note(text)
}

// note is a text as long as an Event takes it.
func note(text string) string { return strings.ToValidUTF8(text[:min(len(text), maxNote)], "") }
