package hub

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/meshctl/meshctl/engine/relay"
	"github.com/meshctl/meshctl/engine/relay/relayv1"
	"github.com/meshctl/meshctl/engine/snapshot"
)

// TestAnAgentOfTheVersionBefore: the hub says to it what it has of each kind, and to one of this version what it has of all together.
func TestAnAgentOfTheVersionBefore(t *testing.T) {
	t.Parallel()
	_, client := serving(t)
	said := hello("west")
	in, err := report(t.Context(), client, said)
	require.NoError(t, err)
	require.NoError(t, in.Send(&relayv1.Data{Frame: &relayv1.Data_Change{Change: &relayv1.Change{
		Sequence: 1, Kind: relay.KindName(snapshot.Service),
		Puts: []*relayv1.Put{{Name: &relayv1.Name{Namespace: "default", Name: "x"}, Hash: make([]byte, 16), Object: []byte("\xff")}},
	}}}))
	for acked := false; !acked; {
		f, err := in.Recv()
		require.NoError(t, err)
		acked = f.GetAck() != nil
	}
	for newest, together := range map[uint32]bool{1: false, relay.Protocol: true, relay.Protocol + 7: true} {
		said.OldestProtocol, said.NewestProtocol = 1, newest
		in, err := report(t.Context(), client, said)
		require.NoError(t, err)
		f, err := in.Recv()
		require.NoError(t, err)
		assert.Equal(t, together, f.GetHeldAll() != nil, newest)
		assert.Equal(t, !together, f.GetHeld() != nil, newest)
	}
}
