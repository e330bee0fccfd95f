package serve

import (
	"cmp"
	"context"
	"log/slog"
	"strings"
	"sync"
	"time"

	"github.com/meshctl/meshctl/engine/apply"
	"github.com/meshctl/meshctl/engine/cluster"
	"github.com/meshctl/meshctl/engine/explain"
	"github.com/meshctl/meshctl/engine/kube"
	"github.com/meshctl/meshctl/engine/snapshot"
)

const (
	// timelineShare is how much of the time is spent at most with comparing translations: one part of so many.
	timelineShare = 20
	// storePause is the least time between two writes of the record.
	storePause = 4 * time.Second
	// credentialsPause is how often it is looked whether credentials were renewed.
	credentialsPause = 15 * time.Second
	// maxAsked bounds the objects for which it is asked at once who edited them.
	maxAsked = 20
)

// timeline records what changed for traffic, and because of what. It works beside the loop, which never waits for it:
// of translations that come faster than they can be compared, several count as one.
type timeline struct {
	store *changeStore
	log   *slog.Logger
	state func() *snapshot.State
	// editors says who edited objects.
	editors func(ctx context.Context, ref snapshot.Ref) (manager, operation string)
	// credentials are those of the clusters.
	credentials func() []cluster.CredentialStatus
	// leader is the identity of this process.
	leader string
	// namespace is that of the management plane.
	namespace string
	wake      chan struct{}

	mu sync.Mutex
	// pending are entries that are not stored yet.
	pending []snapshot.Change

	// compared is the last translation that was compared; nil before the first. issued is when credentials were.
	compared *snapshot.State
	issued   map[string]time.Time
}

// newTimeline prepares a timeline without I/O.
func newTimeline(o Options, w *worker) (*timeline, error) {
	client, err := newChangeStore(o)
	if err != nil {
		return nil, err
	}
	asked, err := newEditors(o)
	if err != nil {
		return nil, err
	}
	return &timeline{
		store: client, log: o.Log, state: func() *snapshot.State { return w.loop.state.Load() }, editors: asked.of, credentials: w.credentials,
		leader: o.identity, namespace: o.Namespace, wake: make(chan struct{}, 1), issued: map[string]time.Time{},
	}, nil
}

// notify says that there may be something to record.
func (t *timeline) notify() {
	select {
	case t.wake <- struct{}{}:
	default:
	}
}

// record adds what was put back, or could not be written, in one cluster.
func (t *timeline) record(set apply.ChangeSet) {
	var found []snapshot.Change
	for i := range set.Changes {
		switch c := &set.Changes[i]; {
		case c.Reverted != nil:
			found = append(found, revertedChange(c))
		case c.Action == apply.Failed:
			found = append(found, snapshot.Change{
				Time: c.Time, Kind: snapshot.ChangeRefused, On: c.Ref, Cluster: set.Cluster, What: "cannot be written: " + c.Message, Harm: true,
			})
		}
	}
	t.add(found...)
}

// maxAdded bounds the entries that wait to be stored.
const maxAdded = snapshot.MaxChanges

func (t *timeline) add(changes ...snapshot.Change) {
	if len(changes) == 0 {
		return
	}
	t.mu.Lock()
	t.pending = append(t.pending, changes...)
	if more := len(t.pending) - maxAdded; more > 0 {
		t.pending = t.pending[more:]
	}
	t.mu.Unlock()
	t.notify()
}

// take returns the pending entries.
func (t *timeline) take() []snapshot.Change {
	t.mu.Lock()
	defer t.mu.Unlock()
	out := t.pending
	t.pending = nil
	return out
}

// run records until ctx ends.
func (t *timeline) run(ctx context.Context) {
	t.add(snapshot.Change{Time: time.Now(), Kind: snapshot.ChangeLeader, What: "meshctl serve leads: " + processOf(t.leader)})
	tick := time.NewTicker(credentialsPause)
	defer tick.Stop()
	for ctx.Err() == nil {
		select {
		case <-ctx.Done():
			return
		case <-t.wake:
		case <-tick.C:
		}
		if !sleep(ctx, gatherTime) { // the consequences of one edit come together
			return
		}
		began := time.Now()
		if broken := kube.Catch(func() { t.compare(ctx) }); broken != nil {
			t.log.Error("what changed cannot be told; everything else goes on. This is a bug in meshctl, please report it", "error", broken)
		}
		took := time.Since(began)
		t.renewals()
		t.store.add(ctx, t.take())
		if !sleep(ctx, max(storePause, timelineShare*took)) {
			return
		}
	}
}

// processOf is the name of a process without what makes its identity unique.
func processOf(identity string) string {
	name, _, _ := strings.Cut(identity, "_")
	return cmp.Or(name, "unknown")
}

// compare adds what the latest translation changed since the one that was compared last.
func (t *timeline) compare(ctx context.Context) {
	before, after := t.compared, t.state()
	t.compared = after
	if before == nil || after == nil || before == after {
		return
	}
	m := &explain.Moment{Before: before, After: after, Observed: describe(before, after.Input), At: time.Now()}
	m.Edits = t.edits(ctx, before.Input, after.Input)
	t.add(m.Changes()...)
}

// edits are the users' objects that differ between two Inputs, with who edited them if that can be read.
func (t *timeline) edits(ctx context.Context, before, after *snapshot.Input) (out []snapshot.ChangeCause) {
	for ref := range userChanges(before, after) {
		cause := snapshot.ChangeCause{Kind: snapshot.ChangeEdited, On: ref, What: "was edited"}
		was, is := before.Find(ref), after.Find(ref)
		switch {
		case ref.Kind == snapshot.KubernetesCluster && !registers(before, after, ref.Name):
			continue // clusters that come and go have entries of their own, and others are edited by meshctl
		case is == nil:
			cause.What = "was deleted"
		case was == nil:
			cause.What = "was created"
		}
		if is != nil && ref.Cluster == "" && len(out) < maxAsked {
			cause.By, cause.Operation = t.editors(ctx, ref)
		}
		out = append(out, cause)
	}
	return sorted(out)
}

// registers reports whether a cluster is registered in both Inputs.
func registers(before, after *snapshot.Input, name string) bool {
	return before.Cluster(name) != nil && after.Cluster(name) != nil
}

// renewals adds the credentials that were renewed since the last call.
func (t *timeline) renewals() {
	for _, c := range t.credentials() {
		last, known := t.issued[c.Cluster]
		t.issued[c.Cluster] = c.Issued
		if !known || !c.Issued.After(last) {
			continue
		}
		ref := snapshot.Ref{Kind: snapshot.KubernetesCluster, Namespace: t.namespace, Name: c.Cluster}
		t.add(snapshot.Change{
			Time: time.Now(), Kind: snapshot.ChangeCredential, On: ref, Cluster: c.Cluster,
			What: "has a new credential, valid until " + c.Expires.UTC().Format("2006-01-02 15:04:05 MST"),
		})
	}
}
