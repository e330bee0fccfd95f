package serve

import (
	"context"
	"sync/atomic"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	commonv1 "github.com/meshctl/meshctl/engine/api/common/v1"
	"github.com/meshctl/meshctl/engine/kube"
	"github.com/meshctl/meshctl/engine/snapshot"
)

// statesPause is the least time between two comparisons of states: an object that comes and goes has one Event in this time.
const statesPause = 5 * time.Second

// stateRecorder reports in Events that an object is no longer ready, or that it is again: those of its condition Ready, as its status
// has it. It works beside the loop, which never waits for it: of translations that come faster, several count as one.
type stateRecorder struct {
	recorder *recorder
	wake     chan struct{}
	// first is the first translation of a term: what is stored then was told by who led before. It is nil once it was compared.
	first atomic.Pointer[snapshot.State]
	begun atomic.Bool
	// told are the states that are known to people; nil before the first comparison.
	told map[snapshot.Ref]readiness
}

// readiness is whether an object is ready, and the reason if it is not.
type readiness struct {
	ready  bool
	reason string
}

func newStateRecorder(r *recorder) *stateRecorder {
	return &stateRecorder{recorder: r, wake: make(chan struct{}, 1)}
}

// notify says that there was a translation.
func (s *stateRecorder) notify() {
	if s.begun.CompareAndSwap(false, true) {
		s.first.Store(s.recorder.state())
	}
	select {
	case s.wake <- struct{}{}:
	default:
	}
}

// run compares states until ctx ends.
func (s *stateRecorder) run(ctx context.Context) {
	for {
		select {
		case <-ctx.Done():
			return
		case <-s.wake:
		}
		if !sleep(ctx, gatherTime) { // the consequences of one edit come together
			return
		}
		if broken := kube.Catch(func() { s.compare(time.Now()) }); broken != nil {
			s.recorder.log.Error("changes of states are not recorded in events; everything else goes on. This is a bug in meshctl, please report it", "error", broken)
		}
		if !sleep(ctx, statesPause) {
			return
		}
	}
}

// compare hands to the recorder what has changed since people were told. What there is no room for stays untold, and is compared again.
func (s *stateRecorder) compare(now time.Time) {
	state := s.recorder.state()
	if state == nil {
		return
	}
	if s.told == nil {
		s.told = map[snapshot.Ref]readiness{}
		if first := s.first.Swap(nil); first != nil {
			s.learn(first)
		}
	}
	there := make(map[snapshot.Ref]bool, len(s.told))
	for status := range state.Output.Statuses.All() {
		conditions := snapshot.ConditionsIn(status.Value)
		if len(conditions) == 0 {
			continue // as most have: those of services and workloads
		}
		there[status.Ref] = true
		is, message, settled := readinessIn(conditions)
		was, known := s.told[status.Ref]
		switch {
		case !settled, known && was == is:
			continue
		case !known && is.ready, s.recorder.changed(status.Ref, is, message, now):
			s.told[status.Ref] = is
		}
	}
	for ref := range s.told {
		if !there[ref] {
			delete(s.told, ref)
		}
	}
}

// learn takes over what is stored in the objects of a translation.
func (s *stateRecorder) learn(state *snapshot.State) {
	for status := range state.Output.Statuses.All() {
		if o := state.Input.Find(status.Ref); o != nil {
			if was, _, settled := readinessIn(snapshot.ConditionsOf(o)); settled {
				s.told[status.Ref] = was
			}
		}
	}
}

// readinessIn reads conditions. An object is not settled that has no such condition, or that gets ready without anybody's doing.
func readinessIn(conditions []metav1.Condition) (r readiness, message string, settled bool) {
	c := meta.FindStatusCondition(conditions, commonv1.ConditionReady)
	switch {
	case c == nil || meta.IsStatusConditionTrue(conditions, commonv1.ConditionReconciling):
		return readiness{}, "", false
	case c.Status == metav1.ConditionTrue:
		return readiness{ready: true}, "", true
	}
	return readiness{reason: c.Reason}, c.Message, true
}

// changed adds the Event of a change of state to what is pending, and reports whether there was room.
func (r *recorder) changed(ref snapshot.Ref, is readiness, message string, now time.Time) bool {
	h := &pendingEvent{cause: ref, action: stateChanged, at: now, reason: is.reason, kind: corev1.EventTypeWarning, message: message}
	if is.ready {
		h.reason, h.kind, h.message = commonv1.ConditionReady, corev1.EventTypeNormal, "it is ready again"
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if len(r.pending) >= maxPending {
		return false
	}
	r.pending = append(r.pending, h)
	select {
	case r.wake <- struct{}{}:
	default:
	}
	return true
}
