package serve

import (
	"context"
	"io"
	"log/slog"
	"net"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/meshctl/meshctl/demo/waittest"
	"github.com/meshctl/meshctl/engine/kube"
)

// doorOf is the door of one replica, and how to end the replica.
func doorOf(t *testing.T) (d *door, end func()) {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	t.Cleanup(cancel)
	d, err := openDoor(ctx, Options{Relay: &Relay{Bind: "127.0.0.1:0"}, Log: slog.New(slog.DiscardHandler)}, &leadership{})
	require.NoError(t, err)
	return d, cancel
}

// lead makes a replica the leader, which answers what it hears.
func (d *door) lead(t *testing.T) (within *inside) {
	t.Helper()
	within = &inside{address: d.listener.Addr(), conns: make(chan net.Conn), closed: make(chan struct{})}
	d.set(within)
	t.Cleanup(func() { _ = within.Close() })
	go func() {
		for {
			conn, err := within.Accept()
			if err != nil {
				return
			}
			go func() { _, _ = io.Copy(conn, conn); _ = conn.Close() }()
		}
	}()
	return within
}

// follow tells a replica who leads.
func (d *door) follow(leader string) { d.leader.other.Store(&leader) }

func dial(t *testing.T, d *door) net.Conn {
	t.Helper()
	conn, err := net.Dial("tcp", d.listener.Addr().String())
	require.NoError(t, err)
	t.Cleanup(func() { _ = conn.Close() })
	require.NoError(t, conn.SetDeadline(time.Now().Add(waittest.Limit())))
	return conn
}

// echo sends a word, and returns what comes back.
func echo(conn net.Conn, word string) (string, error) {
	if _, err := io.WriteString(conn, word); err != nil {
		return "", err
	}
	out := make([]byte, len(word))
	_, err := io.ReadFull(conn, out)
	return string(out), err
}

// TestReplicasPassAgentsOnToTheLeader: whichever one an agent reaches, it speaks with the leader; where there is none, it is told at once.
func TestReplicasPassAgentsOnToTheLeader(t *testing.T) {
	t.Parallel()
	first, endFirst := doorOf(t)
	second, endSecond := doorOf(t)
	_, err := echo(dial(t, second), "hello")
	require.Error(t, err, "there is no leader")
	second.follow("an older version")
	_, err = echo(dial(t, second), "hello")
	require.Error(t, err, "the leader has no address for this")

	within := first.lead(t)
	second.follow("one" + advertised + first.listener.Addr().String())
	through, direct := dial(t, second), dial(t, first)
	for _, conn := range []net.Conn{through, direct} {
		got, err := echo(conn, "hello")
		require.NoError(t, err)
		assert.Equal(t, "hello", got)
	}

	// The leader steps down, and the other one takes its place.
	first.set(nil)
	_ = within.Close()
	second.lead(t)
	first.follow("two" + advertised + second.listener.Addr().String())
	turned := dial(t, first)
	got, err := echo(turned, "again")
	require.NoError(t, err)
	assert.Equal(t, "again", got)

	// A replica that ends takes with it what it passes on, so that the agent dials again.
	endFirst()
	_, err = io.ReadAll(turned)
	require.NoError(t, err, "it is closed")
	_, err = net.Dial("tcp", first.listener.Addr().String())
	require.Error(t, err)
	endSecond()
}

// TestAPanicEndsOneCall: of one agent, and not the process.
func TestAPanicEndsOneCall(t *testing.T) {
	t.Parallel()
	d, _ := doorOf(t)
	require.NoError(t, d.withstand("/Report", nil, nil))
	require.ErrorIs(t, d.withstand("/Report", io.EOF, nil), io.EOF)
	err := d.withstand("/Report", nil, kube.Catch(func() { panic("secret words") }))
	assert.Equal(t, codes.Internal, status.Code(err))
	assert.NotContains(t, err.Error(), "secret words")
}
