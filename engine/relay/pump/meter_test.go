package pump

import (
	"context"
	"errors"
	"io"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"

	"github.com/meshctl/meshctl/engine/relay/relayv1"
)

// held, ask, change, complete and ack are frames of the replication of one set.
func held(kind string, n uint64) proto.Message {
	return &relayv1.Feedback{Frame: &relayv1.Feedback_Held{Held: &relayv1.Held{Kind: kind, Count: n}}}
}

func ask(kind string) proto.Message {
	return &relayv1.Data{Frame: &relayv1.Data_Ask{Ask: &relayv1.Ask{Kind: kind}}}
}

func sends(kind string, sequence uint64) proto.Message {
	return &relayv1.Data{Frame: &relayv1.Data_Change{Change: &relayv1.Change{Kind: kind, Sequence: sequence, Puts: []*relayv1.Put{{Object: make([]byte, 100)}}}}}
}

func complete(kind string, unknown bool) proto.Message {
	return &relayv1.Data{Frame: &relayv1.Data_Complete{Complete: &relayv1.Complete{Kind: kind, Unknown: unknown}}}
}

func ack(sequence uint64, rejects ...*relayv1.Reject) proto.Message {
	return &relayv1.Feedback{Frame: &relayv1.Feedback_Ack{Ack: &relayv1.Ack{Sequence: sequence, Rejects: rejects}}}
}

// TestMeterOfASet: what is compared, waits and was rejected follows from the frames, on either side.
func TestMeterOfASet(t *testing.T) {
	t.Parallel()
	for name, sender := range map[string]bool{"sender": true, "receiver": false} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			m := &Meter{}
			s := m.Begin()
			pass := func(frame proto.Message) {
				_, data := frame.(*relayv1.Data)
				s.pass(frame, data == sender)
			}
			for _, kind := range []string{"full", "delta", "same", "unknown"} {
				pass(held(kind, 1))
			}
			n := m.Numbers()
			assert.Equal(t, 4, n.Resyncing)
			assert.Equal(t, "unknown", n.Comparing)
			pass(complete("same", false))
			pass(complete("unknown", true))
			pass(ask("delta"))
			pass(sends("full", 1))
			pass(sends("delta", 2))
			pass(complete("full", false))
			pass(complete("delta", false))
			pass(sends("full", 3))
			pass(complete("full", false))
			n = m.Numbers()
			assert.Equal(t, Resyncs{Full: 1, Delta: 1, Same: 1}, n.Resyncs)
			assert.Zero(t, n.Resyncing)
			assert.Greater(t, n.Unacked, 300)
			first := n.Oldest
			assert.Equal(t, time.Minute, n.Lag(first.Add(time.Minute)))
			pass(ack(1))
			pass(ack(2, &relayv1.Reject{Kind: "delta", Name: &relayv1.Name{Namespace: "n", Name: "a"}}))
			n = m.Numbers()
			assert.Equal(t, uint64(1), n.Rejects)
			assert.Equal(t, "delta n/a", n.Reject)
			assert.True(t, n.Oldest.After(first))
			assert.Less(t, n.Unacked, 300)
			pass(ack(3))
			n = m.Numbers()
			assert.Zero(t, n.Unacked)
			assert.Zero(t, n.Lag(time.Now()))
			data, feedback := n.Sent, n.Received
			if !sender {
				data, feedback = feedback, data
			}
			assert.Equal(t, uint64(9), data.Frames)
			assert.Equal(t, uint64(7), feedback.Frames)
			assert.Greater(t, data.Bytes, feedback.Bytes)
		})
	}
}

// TestMeterOfRequests: the oldest request without an answer says for how long nothing comes back.
func TestMeterOfRequests(t *testing.T) {
	t.Parallel()
	m := &Meter{}
	s := m.Begin()
	send := Sending(s, func(*relayv1.Request) error { return nil })
	for id := range uint64(3) {
		require.NoError(t, send(&relayv1.Request{Id: id + 1}))
	}
	n := m.Numbers()
	assert.Equal(t, 3, n.Unacked)
	oldest := n.Oldest
	answers := Receiving(s, func() (*relayv1.Answer, error) { return &relayv1.Answer{Id: 1}, nil })
	_, err := answers()
	require.NoError(t, err)
	require.NoError(t, send(&relayv1.Request{Id: 2, Cancel: true}))
	n = m.Numbers()
	assert.Equal(t, 1, n.Unacked)
	assert.True(t, n.Oldest.After(oldest))
}

// TestMeterIsToldOfTheOtherSide: what the other side says that it waits for goes on until it says something else, or sends.
func TestMeterIsToldOfTheOtherSide(t *testing.T) {
	t.Parallel()
	agent, hub := &Meter{}, &Meter{}
	agent.Begin().pass(sends("k", 1), true)
	beat := &relayv1.Data{Frame: &relayv1.Data_Beat{Beat: agent.Beat()}}
	assert.Greater(t, beat.GetBeat().GetProgress().GetUnackedBytes(), uint64(100))
	beat.GetBeat().GetProgress().OldestMilliseconds = 2000
	s := hub.Begin()
	s.pass(beat, false)
	n := hub.Numbers()
	assert.Equal(t, 12*time.Second, n.ToldLag(n.Told.Add(10*time.Second)))
	s.pass(sends("k", 1), false)
	s.pass(ack(1), true)
	n = hub.Numbers()
	assert.Zero(t, n.ToldLag(time.Now().Add(time.Hour)))
}

// TestMeterOverStreams: counts go on over streams, and what waited on one waits no more; a stream that was replaced ends without the new
// one.
func TestMeterOverStreams(t *testing.T) {
	t.Parallel()
	m := &Meter{}
	first := m.Begin()
	first.pass(held("k", 0), false)
	first.pass(sends("k", 1), true)
	second := m.Begin()
	n := m.Numbers()
	assert.Zero(t, n.Unacked)
	assert.Zero(t, n.Resyncing)
	first.End(status.Error(codes.Aborted, "replaced"))
	n = m.Numbers()
	assert.True(t, n.Open)
	second.End(context.Canceled)
	n = m.Numbers()
	assert.False(t, n.Open)
	assert.Zero(t, n.Lag(time.Now()))
	assert.Equal(t, map[string]uint64{ReasonReplaced: 1, ReasonClosed: 1}, n.Resets)
	assert.Equal(t, uint64(1), n.Sent.Frames)
}

func TestReasonOf(t *testing.T) {
	t.Parallel()
	for want, errs := range map[string][]error{
		ReasonEnded:    {nil, io.EOF},
		ReasonClosed:   {context.Canceled, status.Error(codes.Canceled, ""), status.Error(codes.Unavailable, "")},
		ReasonSilent:   {context.DeadlineExceeded, status.Error(codes.DeadlineExceeded, "")},
		ReasonReplaced: {status.Error(codes.Aborted, "")},
		ReasonRemoved:  {status.Error(codes.PermissionDenied, "")},
		ReasonRefused:  {status.Error(codes.Unauthenticated, "")},
		ReasonProtocol: {status.Error(codes.InvalidArgument, ""), status.Error(codes.FailedPrecondition, "")},
		ReasonStuck:    {status.Error(codes.ResourceExhausted, "")},
		ReasonOther:    {errors.New("x"), status.Error(codes.Internal, "")},
	} {
		for _, err := range errs {
			assert.Equal(t, want, ReasonOf(err), "%v", err)
		}
	}
}
