package serve

import (
	"bytes"
	"fmt"
	"log/slog"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	commonv1 "github.com/meshctl/meshctl/engine/api/common/v1"
	networkingv1 "github.com/meshctl/meshctl/engine/api/networking/v1"
	"github.com/meshctl/meshctl/engine/snapshot"
)

// conditionsOf are those of a state: "" for none, "Ready", "waits", or the reason why it is not ready.
func conditionsOf(state string) []metav1.Condition {
	switch state {
	case "":
		return nil
	case "Ready":
		return []metav1.Condition{{Type: commonv1.ConditionReady, Status: metav1.ConditionTrue, Reason: "Ready"}}
	case "waits":
		return []metav1.Condition{
			{Type: commonv1.ConditionReady, Status: metav1.ConditionFalse, Reason: "TrustPending"},
			{Type: commonv1.ConditionReconciling, Status: metav1.ConditionTrue, Reason: "TrustPending"},
		}
	}
	return []metav1.Condition{{Type: commonv1.ConditionReady, Status: metav1.ConditionFalse, Reason: state, Message: "because of " + state}}
}

// stateOfPolicies is a translation in which policies are stored in some states, and get others.
func stateOfPolicies(stored, follow map[string]string) *snapshot.State {
	management := &snapshot.Management{}
	for _, name := range []string{"a", "b"} {
		if state, there := stored[name]; there {
			p := &networkingv1.TrafficPolicy{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: name}}
			p.Status.Conditions = conditionsOf(state)
			management.TrafficPolicies = append(management.TrafficPolicies, p)
		}
	}
	var statuses []*snapshot.Status
	for _, name := range []string{"a", "b"} {
		if state, there := follow[name]; there {
			ref := snapshot.Ref{Kind: snapshot.TrafficPolicy, Namespace: "shop", Name: name}
			statuses = append(statuses, &snapshot.Status{Ref: ref, Value: &networkingv1.TrafficPolicyStatus{Conditions: conditionsOf(state)}})
		}
	}
	return &snapshot.State{Input: &snapshot.Input{Management: management}, Output: &snapshot.Output{Statuses: snapshot.ListOf(statuses)}}
}

// TestStatesAreTold: an Event for each change of state, and none for what stays, whoever wrote it.
func TestStatesAreTold(t *testing.T) {
	t.Parallel()
	type states = map[string]string
	for name, c := range map[string]struct {
		// stored is what the first translation found; then come what follows, one translation after the other.
		stored states
		follow []states
		want   []string
	}{
		"created and accepted":         {states{"a": ""}, []states{{"a": "Ready"}}, nil},
		"created and rejected":         {states{"a": ""}, []states{{"a": "FieldInvalid"}, {"a": "FieldInvalid"}}, []string{"Warning a FieldInvalid: because of FieldInvalid"}},
		"worse":                        {states{"a": "Ready"}, []states{{"a": "WriteFailed"}}, []string{"Warning a WriteFailed: because of WriteFailed"}},
		"another reason":               {states{"a": "WriteFailed"}, []states{{"a": "FieldConflict"}}, []string{"Warning a FieldConflict: because of FieldConflict"}},
		"repaired":                     {states{"a": "WriteFailed"}, []states{{"a": "Ready"}, {"a": "Ready"}}, []string{"Normal a Ready: it is ready again"}},
		"as the leader before told":    {states{"a": "WriteFailed", "b": "Ready"}, []states{{"a": "WriteFailed", "b": "Ready"}}, nil},
		"waits, and gets ready":        {states{"a": "Ready"}, []states{{"a": "waits"}, {"a": "Ready"}}, nil},
		"waits, and fails":             {states{"a": "Ready"}, []states{{"a": "waits"}, {"a": "RootProblem"}}, []string{"Warning a RootProblem: because of RootProblem"}},
		"deleted and created, as bad":  {states{"a": "Ready"}, []states{{"a": "X"}, {}, {"a": "X"}}, []string{"Warning a X: because of X", "Warning a X: because of X"}},
		"one of two":                   {states{"a": "Ready", "b": "Ready"}, []states{{"a": "Ready", "b": "X"}}, []string{"Warning b X: because of X"}},
		"there and back before a look": {states{"a": "Ready"}, []states{{"a": "Ready"}}, nil},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			state := stateOfPolicies(c.stored, c.stored)
			r := &recorder{namespace: "gloo-mesh", log: slog.Default(), wake: make(chan struct{}, 1), state: func() *snapshot.State { return state }}
			s := newStateRecorder(r)
			for _, follow := range c.follow {
				// Before the first look, what this process wrote is stored already: only the first translation tells what was.
				if !s.begun.Load() {
					state = stateOfPolicies(c.stored, follow)
				} else {
					state = stateOfPolicies(follow, follow)
				}
				s.notify()
				s.compare(time.Unix(1, 0))
			}
			var got []string
			for h := r.take(); h != nil; h = r.take() {
				e := r.event(h)
				got = append(got, fmt.Sprintf("%s %s %s: %s", e.Type, e.Regarding.Name, e.Reason, e.Note))
			}
			assert.Equal(t, c.want, got)
		})
	}
}

// TestStatesWaitForRoom: what finds no room is told later, and nothing is lost.
func TestStatesWaitForRoom(t *testing.T) {
	t.Parallel()
	var log bytes.Buffer
	state := stateOfPolicies(nil, map[string]string{"a": "X", "b": "X"})
	r := &recorder{namespace: "gloo-mesh", log: slog.New(slog.NewTextHandler(&log, nil)), wake: make(chan struct{}, 1), state: func() *snapshot.State { return state }}
	s := newStateRecorder(r)
	r.pending = make([]*pendingEvent, maxPending-1)
	s.notify()
	s.compare(time.Unix(1, 0))
	require.Len(t, r.pending, maxPending)
	s.compare(time.Unix(2, 0))
	require.Len(t, r.pending, maxPending)
	r.pending = nil
	s.compare(time.Unix(3, 0))
	s.compare(time.Unix(4, 0))
	require.Len(t, r.pending, 1)
	assert.Equal(t, "b", r.pending[0].cause.Name)
	assert.NotContains(t, log.String(), "dropped")
}
