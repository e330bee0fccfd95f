package enroll

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/meshctl/meshctl/demo/waittest"
	"github.com/meshctl/meshctl/engine/snapshot"
)

// TestADebt: only an agent that has a certificate can have one. It is known by that, its token counts no more, and the record goes when it
// has paid; a cluster that is registered again, or revoked, owes nothing.
func TestADebt(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	ctx := t.Context()
	owe := func(want bool) {
		t.Helper()
		owes, err := w.store.Owe(ctx, "west")
		require.NoError(t, err)
		assert.Equal(t, want, owes)
	}
	record := func() Record {
		t.Helper()
		r, err := w.store.Record(ctx, "west")
		require.NoError(t, err)
		return r
	}
	owe(false)
	require.NoError(t, w.store.Forgive(ctx, "west"))
	require.NoError(t, w.store.Paid(ctx, "west"))
	assert.Equal(t, Record{}, record())
	w.give(w.invite("uid-1").Text())
	owe(false)
	require.NoError(t, w.keeper.Start(ctx))
	unused := w.invite("uid-1")
	owe(true)
	require.NoError(t, w.admit())
	require.Error(t, record().made(unused))
	agents := NewAgents(w.store)
	go agents.Run(ctx, func(string) {})
	waittest.Until(t, "it is known", func() bool { return agents.Owes("west") })
	assert.False(t, agents.Owes("east"))

	w.at(time.Hour)
	require.NoError(t, w.keeper.Renew(ctx))
	assert.NotZero(t, record().OwesSince, "a certificate pays nothing")
	require.NoError(t, w.store.Forgive(ctx, "west"))
	waittest.Until(t, "it is forgiven", func() bool { return !agents.Owes("west") })
	require.NoError(t, w.store.Paid(ctx, "west"))
	require.NoError(t, w.admit(), "it is registered again")
	owe(true)
	w.invite("uid-1")
	assert.Zero(t, record().OwesSince)
	now := w.store.Now()
	for name, after := range map[string]Record{
		"approved": Record{}.owe(now).approve(snapshot.RelayWaiting{}, now), "revoked": Record{}.owe(now).revoke(now), "forgiven": Record{}.owe(now).forgive(),
	} {
		assert.Zero(t, after.OwesSince, name)
	}
	owe(true)
	require.NoError(t, w.store.Paid(ctx, "west"))
	assert.Equal(t, Record{}, record())
	require.ErrorContains(t, w.admit(), "no certificate that counts")
}
