package snapshot

import (
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// TestRelayWaitings: those that wait are bounded and counted, one that is still there costs no write, and one that is gone is dropped.
func TestRelayWaitings(t *testing.T) {
	t.Parallel()
	began := time.Date(2026, 11, 1, 12, 0, 0, 0, time.UTC)
	agent := func(n int, after time.Duration) RelayWaiting {
		return RelayWaiting{Cluster: fmt.Sprintf("c%d", n), UID: "uid", Key: "key", Address: "10.0.0.1", Since: began.Add(after), Last: began.Add(after)}
	}
	var w RelayWaitings
	for n := range RelayWaitingMost + 3 {
		var changed bool
		w, changed = w.With(agent(n, time.Duration(n)*time.Second))
		assert.True(t, changed)
	}
	assert.Len(t, w.Agents, RelayWaitingMost)
	assert.EqualValues(t, 3, w.Dropped)
	assert.Equal(t, "c3", w.Agents[0].Cluster, "the oldest are out")

	again := agent(5, time.Minute)
	same, changed := w.With(again)
	assert.False(t, changed)
	assert.Equal(t, w, same)
	again.Last = began.Add(RelayWaitingNoted + time.Minute)
	later, changed := w.With(again)
	assert.True(t, changed)
	assert.Equal(t, w.Agents[2].Since, later.Agents[2].Since)
	assert.Len(t, later.Agents, RelayWaitingMost)
	again.Key = "another key"
	other, changed := later.With(again)
	assert.True(t, changed)
	assert.Len(t, other.Of("c5"), 2, "another key is another agent")
	assert.Empty(t, other.Of("c3"))

	text, err := later.JSON()
	require.NoError(t, err)
	read, err := ParseRelayWaitings(text, began.Add(RelayWaitingLasts+time.Minute+RelayWaitingNoted))
	require.NoError(t, err)
	require.Len(t, read.Agents, 1, "the others ask no more")
	assert.Equal(t, "c5", read.Agents[0].Cluster)
	assert.EqualValues(t, 3, read.Dropped)
	_, err = ParseRelayWaitings([]byte("{"), began)
	require.ErrorContains(t, err, "agents that wait")
	gone, changed := read.Without("c5")
	assert.True(t, changed)
	assert.Empty(t, gone.Agents)
	_, changed = gone.Without("c5")
	assert.False(t, changed)
}
