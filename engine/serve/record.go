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
	"k8s.io/client-go/kubernetes"
	eventsclient "k8s.io/client-go/kubernetes/typed/events/v1"

	"github.com/meshctl/meshctl/engine/apply"
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
	// gatherTime is how long changes gather before they are written: after the
	// writes that they tell of, for which nothing should have to wait, and as one
	// Event for a policy that is edited again and again.
	gatherTime = time.Second
	// recordPause is the pause between two Events: ten a second at most.
	recordPause = 100 * time.Millisecond
	// recordTimeout bounds one write.
	recordTimeout = 5 * time.Second
)

// recorder tells in Events on the management cluster what was written where,
// and because of which policy: one Event for a policy, a cluster and an action,
// however many objects that took. What cannot be recorded is left out: nothing
// waits for it.
type recorder struct {
	events   eventsclient.EventsV1Interface
	instance string
	// home is the management plane's namespace, to which belongs what no
	// policy asked for.
	home  string
	state func() *snapshot.State
	log   *slog.Logger

	mu      sync.Mutex
	pending []*happening
	dropped int
	wake    chan struct{}
	// told is the reason of the last complaint.
	told string
}

// happening is what becomes an Event.
type happening struct {
	because snapshot.Ref
	cluster string
	action  action
	// counts are objects by what was done to them: "VirtualServices created".
	counts map[string]int
	// message is why, of the first failure.
	message string
	at      time.Time
}

// action is how an Event calls what was done.
type action string

const (
	applied action = "Applied"
	deleted action = "Deleted"
	failed  action = "Failed"
)

// newRecorder prepares a recorder; it dials nobody. State is the latest
// translation, or nil.
func newRecorder(o Options, state func() *snapshot.State) (*recorder, error) {
	kube, err := kubernetes.NewForConfig(o.Management)
	if err != nil {
		return nil, fmt.Errorf("recording of events: building a client: %w", err)
	}
	return &recorder{
		events: kube.EventsV1(), instance: o.identity, home: o.Namespace, state: state, log: o.Log, wake: make(chan struct{}, 1),
	}, nil
}

// record takes what was done in one cluster.
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
			r.note(parent, set.Cluster, c)
		}
	}
	r.mu.Unlock()
	select {
	case r.wake <- struct{}{}:
	default:
	}
}

// note adds a change to what is pending.
func (r *recorder) note(because snapshot.Ref, cluster string, c apply.Change) {
	what := map[apply.Action]action{apply.Deleted: deleted, apply.Failed: failed}[c.Action]
	what = cmp.Or(what, applied)
	at := slices.IndexFunc(r.pending, func(h *happening) bool {
		return h.because == because && h.cluster == cluster && h.action == what
	})
	if at < 0 {
		if len(r.pending) == maxPending {
			r.dropped++
			return
		}
		at = len(r.pending)
		r.pending = append(r.pending, &happening{because: because, cluster: cluster, action: what, counts: map[string]int{}})
	}
	h := r.pending[at]
	h.at = c.Time
	h.counts[c.Ref.Kind.String()+" "+string(c.Action)]++
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
			r.complain(r.write(ctx, h))
			if !sleep(ctx, recordPause) {
				return
			}
		}
	}
}

// take is the next to be written; nil if there is none.
func (r *recorder) take() *happening {
	r.mu.Lock()
	defer r.mu.Unlock()
	if len(r.pending) == 0 {
		if r.dropped > 0 {
			r.log.Warn("more was written at once than events can tell; the metrics count it all", "untold", r.dropped)
			r.dropped = 0
		}
		return nil
	}
	h := r.pending[0]
	r.pending = r.pending[1:]
	return h
}

func (r *recorder) write(ctx context.Context, h *happening) error {
	ctx, cancel := context.WithTimeout(ctx, recordTimeout)
	defer cancel()
	event := r.event(h)
	_, err := r.events.Events(event.Namespace).Create(ctx, event, metav1.CreateOptions{})
	if err != nil {
		return fmt.Errorf("event of %s: %w", event.Regarding.Name, err)
	}
	return nil
}

// complain logs why Events cannot be written, once for each kind of reason.
func (r *recorder) complain(err error) {
	reason := ""
	if err != nil {
		reason = cmp.Or(string(apierrors.ReasonForError(err)), "unreachable")
	}
	if reason != "" && reason != r.told {
		r.log.Warn("what was written cannot be recorded in events; all else goes on; serve needs create on events.events.k8s.io in the management cluster", "error", err)
	}
	r.told = reason
}

func (r *recorder) event(h *happening) *eventsv1.Event {
	regarding := r.regarding(h.because)
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
	if h.cluster != "" {
		related := r.regarding(snapshot.Ref{Kind: snapshot.KubernetesCluster, Namespace: r.home, Name: h.cluster})
		e.Related = &related
	}
	return e
}

// maxName leaves room for what makes the name unique.
const maxName = 200

func name(of string) string { return strings.TrimRight(of[:min(len(of), maxName)], ".-") + "-" }

// regarding refers to an object, with its UID if that is known, by which
// kubectl finds its Events.
func (r *recorder) regarding(ref snapshot.Ref) corev1.ObjectReference {
	if ref == (snapshot.Ref{}) {
		return corev1.ObjectReference{APIVersion: "v1", Kind: "Namespace", Namespace: r.home, Name: r.home}
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

// text says what was done, such as "cluster-1: 2 VirtualService created".
func (h *happening) text() string {
	where := cmp.Or(h.cluster, "management cluster")
	var parts []string
	for what, n := range h.counts {
		parts = append(parts, fmt.Sprintf("%d %s", n, what))
	}
	slices.Sort(parts)
	text := where + ": " + strings.Join(parts, ", ")
	if h.message != "" {
		text += "; " + h.message
	}
	return strings.ToValidUTF8(text[:min(len(text), maxNote)], "")
}
