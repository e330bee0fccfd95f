package serve

import (
	"io"
	"log/slog"
	"net"
	"testing"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/meshctl/meshctl/demo/waittest"
)

// TestConnectionsThatArePassedOn: those that are passed on are counted while they last, and those that cannot be by reason.
func TestConnectionsThatArePassedOn(t *testing.T) {
	t.Parallel()
	leader := &leadership{}
	o := Options{Log: slog.New(slog.DiscardHandler), Relay: &Relay{Bind: "127.0.0.1:0"}}
	d, err := openDoor(t.Context(), o, leader)
	require.NoError(t, err)
	registry := prometheus.NewRegistry()
	d.register(registry)
	value := func(name, reason string) float64 {
		families, err := registry.Gather()
		require.NoError(t, err)
		for _, f := range families {
			for _, m := range f.GetMetric() {
				if f.GetName() == name && (reason == "" || m.GetLabel()[0].GetValue() == reason) {
					return m.GetGauge().GetValue() + m.GetCounter().GetValue()
				}
			}
		}
		return 0
	}
	dial := func() net.Conn {
		conn, err := net.Dial("tcp", d.listener.Addr().String())
		require.NoError(t, err)
		t.Cleanup(func() { _ = conn.Close() })
		return conn
	}
	closed := func() {
		t.Helper()
		_, err := dial().Read(make([]byte, 1))
		require.ErrorIs(t, err, io.EOF)
	}
	closed()
	name := "other"
	leader.other.Store(&name)
	closed()
	away, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	gone := "other" + advertised + away.Addr().String()
	require.NoError(t, away.Close())
	leader.other.Store(&gone)
	closed()
	for _, reason := range []string{noLeader, noAddress, noAnswer} {
		assert.InDelta(t, 1, value("meshctl_relay_forward_failures_total", reason), 0, reason)
	}

	there, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	t.Cleanup(func() { _ = there.Close() })
	here := "other" + advertised + there.Addr().String()
	leader.other.Store(&here)
	conn := dial()
	waittest.Until(t, "the connection is passed on", func() bool { return value("meshctl_relay_forwarded_connections", "") == 1 })
	require.NoError(t, conn.Close())
	waittest.Until(t, "it has ended", func() bool { return value("meshctl_relay_forwarded_connections", "") == 0 })
}
