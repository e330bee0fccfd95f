package relaytest

import (
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/meshctl/meshctl/demo/waittest"
	"github.com/meshctl/meshctl/engine/relay/hub"
	"github.com/meshctl/meshctl/engine/relay/pump"
	"github.com/meshctl/meshctl/engine/snapshot"
)

// connection is what statuses tell of the connection of west's agent.
func (w *world) connection() *snapshot.Relay {
	if west := clusterOf(w.relayed); west != nil && west.Relay != nil {
		return west.Relay
	}
	return &snapshot.Relay{}
}

// reaches waits until the connection is in a phase.
func (w *world) reaches(phase snapshot.RelayPhase) *snapshot.Relay {
	w.t.Helper()
	waittest.Until(w.t, "the connection is "+string(phase), func() bool { return w.connection().Phase == phase })
	return w.connection()
}

// status is what the hub knows of the connection.
func (w *world) status() hub.Status {
	w.t.Helper()
	all := w.hub.Statuses()
	require.Len(w.t, all, 1)
	return all[0]
}

// TestWhatIsToldOfAConnection: the Input says how the agent is connected. It stays the same over reconnections that nobody has to know of,
// and while nothing but numbers changes.
func TestWhatIsToldOfAConnection(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	awaited := w.reaches(snapshot.RelayAwaited)
	assert.Equal(t, snapshot.RelayAbsent, awaited.Reason.Code)
	assert.Empty(t, awaited.Version)

	w.agent()
	w.same()
	first := w.reaches(snapshot.RelayConnected)
	assert.Equal(t, "test", first.Version)
	assert.Zero(t, first.Reason)
	assert.WithinDuration(t, time.Now(), first.Since, time.Minute)
	s := w.status()
	assert.Positive(t, s.Objects)
	assert.NotEmpty(t, s.Address)
	assert.Positive(t, s.Report.Received.Bytes)
	assert.Positive(t, s.Report.Resyncs.Full, "the hub was empty")
	waittest.Until(t, "nothing waits on its way up", func() bool {
		s := w.status()
		return s.LagUp(time.Now()) == 0
	})

	t.Log("a reconnection is counted, and not told")
	w.proxy.cut()
	waittest.Until(t, "the stream was reset, and kinds were compared again of which nothing changed", func() bool {
		s := w.status()
		return s.Report.Resets[pump.ReasonClosed] > 0 && s.Report.Open && s.Report.Resyncs.Same > 0
	})
	w.same()
	assert.Same(t, first, w.connection())

	t.Log("the agent is away for a time")
	w.proxy.block(true)
	lost := w.reaches(snapshot.RelayLost)
	assert.Equal(t, snapshot.RelayAbsent, lost.Reason.Code)
	assert.Contains(t, lost.Reason.What, "its agent has no connection: ")
	assert.Equal(t, first.Version, lost.Version)
	assert.False(t, lost.Since.Before(first.Since))

	w.proxy.block(false)
	again := w.reaches(snapshot.RelayConnected)
	assert.False(t, again.Since.Before(lost.Since))
}

// TestAnAgentIsReady: it is once it has what is to stand, and says why before; the hub's metrics and its own agree on what passed.
func TestAnAgentIsReady(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.proxy.block(true)
	a := w.newAgent(w.proxy.address(), lines{t})
	w.run(a.Run)
	waittest.Until(t, "the agent says that the hub is away", func() bool { return a.Disconnected().Code == snapshot.RelayAbsent })
	assert.Contains(t, a.Unready(), "is not connected: ")
	w.proxy.block(false)
	serving := w.server()
	serving.want("a", "one")
	serving.written()
	waittest.Until(t, "the agent is ready", func() bool { return a.Unready() == "" })
	assert.Zero(t, a.Disconnected())
	waittest.Until(t, "nothing waits in either direction", func() bool {
		s := w.status()
		return s.Complete && s.Generation > 0 && s.Generation == s.Told && s.Report.Unacked == 0 && a.Series().Streams[pump.Report].Unacked == 0
	})
	assert.Positive(t, a.Series().Streams[pump.Report].Resyncs.Full)
	assert.Positive(t, a.Series().Streams[pump.Exchange].Received.Frames)
}

// TestPoliciesNameClustersWhoseAgentIsAway: what is wanted in a cluster and is not written there, because its agent is away or was never
// here, is a failure of the policies that want it, as with a cluster whose API server does not answer; and ends once it stands.
func TestPoliciesNameClustersWhoseAgentIsAway(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	serving := w.server()
	awaited := func(because string) bool {
		for _, f := range serving.sink.Failures() {
			if f.Ref.Kind == snapshot.KubernetesCluster && f.Ref.Name == "west" && len(f.Parents) == 1 && f.Parents[0] == policy {
				return f.Code == snapshot.ClusterAwaited || strings.Contains(f.What, because)
			}
		}
		return false
	}
	serving.want("a", "one")
	waittest.Until(t, "the status of the policy names a cluster whose agent was never here", func() bool { return awaited("its agent has not connected yet") })
	w.agent()
	serving.written()
	waittest.Until(t, "the policy holds", func() bool { return len(serving.sink.Failures()) == 0 })

	w.proxy.block(true)
	w.reaches(snapshot.RelayLost)
	serving.want("a", "two")
	waittest.Until(t, "the status of the policy names a cluster whose agent is away", func() bool { return awaited("its agent has no connection") })
	w.proxy.block(false)
	serving.written()
	waittest.Until(t, "the policy holds again", func() bool { return len(serving.sink.Failures()) == 0 })
}
