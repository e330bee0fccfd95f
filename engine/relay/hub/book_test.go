package hub

import (
	"context"
	"crypto/x509"
	"errors"
	"log/slog"
	"net"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
	"k8s.io/client-go/rest"

	"github.com/meshctl/meshctl/engine/relay"
	"github.com/meshctl/meshctl/engine/relay/pump"
	"github.com/meshctl/meshctl/engine/relay/relayv1"
	"github.com/meshctl/meshctl/engine/snapshot"
	"github.com/meshctl/meshctl/engine/watch"
)

// gate admits the agent of west in the cluster with UID west, and takes everybody else for an impostor of the cluster that the UID is.
type gate struct{}

func (gate) Run(context.Context, func(string)) {}

func (gate) Admit(_ context.Context, _ []*x509.Certificate, uid string) (string, error) {
	switch uid {
	case "west":
		return "west", nil
	case "nobody":
		return "", errors.New("the certificate is of another root; make a token with `meshctl cluster invite`")
	case "approval":
		return "west", pending{}
	}
	return uid, errors.New("the certificate was revoked; make a token with `meshctl cluster invite`")
}

func (gate) Enroll(context.Context, string, []byte, string, string) (string, []byte, []byte, error) {
	return "", nil, nil, errors.New("the token was used before; make another one")
}

func (gate) Renew(context.Context, []*x509.Certificate, []byte, string) (string, []byte, []byte, error) {
	return "west", nil, nil, errors.New("the certificate expired; make a token")
}

func (gate) Claimed(_ []*x509.Certificate, token string) string { return token }

// pending is why an agent is refused that nobody has approved.
type pending struct{}

func (pending) Error() string {
	return "nobody has approved the cluster; run `meshctl cluster approve`"
}
func (pending) Code() snapshot.Code { return snapshot.RelayNotApproved }

func (pending) Advice() (what, hint string) {
	return "nobody has approved the cluster", "run `meshctl cluster approve`"
}

// serving starts a hub for west.
func serving(t *testing.T) (*Hub, relayv1.RelayClient) {
	t.Helper()
	h := New(Options{Agents: gate{}, Plane: "plane", Log: slog.New(slog.DiscardHandler), Grace: 10 * time.Millisecond})
	source, err := watch.New(watch.Options{Management: &rest.Config{Host: "https://127.0.0.1:1"}, Log: slog.New(slog.DiscardHandler)})
	require.NoError(t, err)
	_, err = h.Add(source, "west", "")
	require.NoError(t, err)
	server := grpc.NewServer()
	relayv1.RegisterRelayServer(server, h)
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	go func() { _ = server.Serve(listener) }()
	t.Cleanup(server.Stop)
	conn, err := grpc.NewClient(listener.Addr().String(), grpc.WithTransportCredentials(insecure.NewCredentials()))
	require.NoError(t, err)
	t.Cleanup(func() { _ = conn.Close() })
	return h, relayv1.NewRelayClient(conn)
}

// report begins a stream of Report, and returns what the hub answers first.
func report(ctx context.Context, client relayv1.RelayClient, hello *relayv1.Hello) (grpc.BidiStreamingClient[relayv1.Data, relayv1.Feedback], error) {
	in, err := client.Report(ctx)
	if err != nil {
		return nil, err
	}
	if err := in.Send(&relayv1.Data{Frame: &relayv1.Data_Hello{Hello: hello}}); err != nil {
		return nil, err
	}
	_, err = in.Recv()
	return in, err
}

func hello(uid string) *relayv1.Hello {
	return &relayv1.Hello{OldestProtocol: relay.Protocol, NewestProtocol: relay.Protocol, Version: "v1", ClusterUid: uid}
}

// TestRefusals: the last caller that was refused as the agent of a registered cluster is known, with the stage, the address and the next
// step; of others nothing is kept.
func TestRefusals(t *testing.T) {
	t.Parallel()
	old := hello("west")
	old.OldestProtocol, old.NewestProtocol = relay.Protocol+1, relay.Protocol+1
	cases := map[string]struct {
		call func(ctx context.Context, c relayv1.RelayClient) error
		code snapshot.Code
		what string
		hint string
	}{
		"certificate": {func(ctx context.Context, c relayv1.RelayClient) error {
			_, err := report(ctx, c, hello("west2"))
			return err
		}, "", "", ""},
		"approval": {func(ctx context.Context, c relayv1.RelayClient) error {
			_, err := report(ctx, c, hello("approval"))
			return err
		},
			snapshot.RelayNotApproved, "nobody has approved the cluster", "run `meshctl cluster approve`"},
		"version": {func(ctx context.Context, c relayv1.RelayClient) error { _, err := report(ctx, c, old); return err },
			snapshot.RelayVersion, "the agent of west (version v1) speaks versions 3 to 3 of the relay protocol, and the hub versions 1 to 2; upgrade the older one", ""},
		"token": {func(ctx context.Context, c relayv1.RelayClient) error {
			_, err := c.Enroll(ctx, &relayv1.EnrollRequest{Token: "west"})
			return err
		}, snapshot.RelayToken, "the token was used before; make another one", ""},
		"renewal": {func(ctx context.Context, c relayv1.RelayClient) error {
			_, err := c.Renew(ctx, &relayv1.RenewRequest{})
			return err
		}, snapshot.RelayNotRenewed, "the certificate expired; make a token", ""},
		"token of nobody": {func(ctx context.Context, c relayv1.RelayClient) error {
			_, err := c.Enroll(ctx, &relayv1.EnrollRequest{Token: "east"})
			return err
		}, "", "", ""},
		"nobody": {func(ctx context.Context, c relayv1.RelayClient) error {
			_, err := report(ctx, c, hello("nobody"))
			return err
		}, "", "", ""},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			h, client := serving(t)
			require.Error(t, c.call(t.Context(), client))
			h.booksMu.Lock()
			books := len(h.books)
			h.booksMu.Unlock()
			assert.Equal(t, 1, books, "of clusters that are not registered nothing is kept")
			s := h.Statuses()[0]
			if c.code == "" {
				assert.Nil(t, s.Refused)
				assert.Equal(t, snapshot.RelayAwaited, s.Relay.Phase)
				return
			}
			require.NotNil(t, s.Refused)
			assert.Equal(t, snapshot.Reason{Code: c.code, What: c.what, Hint: c.hint}, s.Refused.Reason)
			assert.Equal(t, "127.0.0.1", s.Refused.Address)
			assert.Equal(t, snapshot.RelayRefused, s.Relay.Phase)
			assert.Equal(t, s.Refused.Reason, s.Relay.Reason)

			told := h.book("west").told
			require.Error(t, c.call(t.Context(), client))
			s = h.Statuses()[0]
			assert.Equal(t, uint64(2), s.Refusals)
			assert.Same(t, told, h.book("west").told, "again for the same reason is nothing new")
		})
	}
}

// TestPhases: the phase follows from the streams, the refusals, and from what is complete.
func TestPhases(t *testing.T) {
	t.Parallel()
	now := time.Now()
	at := func(ago time.Duration) time.Time { return whole(now.Add(-ago)) }
	refused := &Refusal{At: now, RelayRefusal: snapshot.RelayRefusal{Reason: snapshot.Reason{Code: snapshot.RelayIdentity}, Since: at(time.Minute)}}
	told := func(r *Refusal) *snapshot.RelayRefusal { return &r.RelayRefusal }
	cases := map[string]struct {
		book     *book
		up, down time.Time
		refused  *snapshot.RelayRefusal
		complete bool
		want     snapshot.RelayPhase
		since    time.Time
		code     snapshot.Code
	}{
		"never":                {&book{began: at(time.Hour)}, time.Time{}, time.Time{}, nil, false, snapshot.RelayAwaited, at(time.Hour), snapshot.RelayAbsent},
		"never, and refused":   {&book{began: at(time.Hour)}, time.Time{}, time.Time{}, told(refused), false, snapshot.RelayRefused, at(time.Minute), snapshot.RelayIdentity},
		"connected":            {&book{connected: at(time.Hour)}, time.Time{}, time.Time{}, nil, true, snapshot.RelayConnected, at(time.Hour), ""},
		"not complete":         {&book{connected: at(time.Hour)}, at(time.Minute), time.Time{}, nil, false, snapshot.RelayResync, at(time.Second), snapshot.RelayComparing},
		"waiting":              {&book{connected: at(time.Hour), before: func() int { return 3 }, atOnce: 16}, at(time.Minute), time.Time{}, nil, false, snapshot.RelayResync, at(time.Second), snapshot.RelayComparing},
		"stuck up":             {&book{connected: at(time.Hour)}, at(time.Minute), time.Time{}, nil, true, snapshot.RelayStuck, at(time.Minute), snapshot.RelayBlocked},
		"stuck down":           {&book{connected: at(time.Hour)}, time.Time{}, at(time.Minute), nil, true, snapshot.RelayStuck, at(time.Minute), snapshot.RelayBlocked},
		"connected, a clone":   {&book{connected: at(time.Hour)}, time.Time{}, time.Time{}, told(refused), true, snapshot.RelayConnected, at(time.Hour), ""},
		"lost":                 {&book{lost: at(time.Second)}, time.Time{}, time.Time{}, nil, false, snapshot.RelayLost, at(time.Second), snapshot.RelayAbsent},
		"lost, refused before": {&book{lost: at(time.Second)}, time.Time{}, time.Time{}, told(refused), false, snapshot.RelayLost, at(time.Second), snapshot.RelayAbsent},
		"lost, refused after":  {&book{lost: at(time.Hour)}, time.Time{}, time.Time{}, told(refused), false, snapshot.RelayRefused, at(time.Minute), snapshot.RelayIdentity},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			out := &snapshot.Relay{UpSince: c.up, DownSince: c.down, Refused: c.refused}
			c.book.phase(out, &pump.Numbers{Since: now.Add(-time.Second)}, c.complete)
			assert.Equal(t, c.want, out.Phase)
			assert.Equal(t, c.since, out.Since)
			assert.Equal(t, c.code, out.Reason.Code)
		})
	}
}

// TestAdmittedAgent: the version, the process and the address are those of the stream that there is.
func TestAdmittedAgent(t *testing.T) {
	t.Parallel()
	h, client := serving(t)
	first := hello("west")
	first.Incarnation = "one"
	in, err := report(t.Context(), client, first)
	require.NoError(t, err)
	frame, err := in.Recv()
	require.NoError(t, err)
	assert.NotNil(t, frame.GetHeld())
	s := h.Statuses()[0]
	assert.Equal(t, "one", s.Incarnation)
	assert.Equal(t, "v1", s.Relay.Version)
	assert.Equal(t, snapshot.RelayResync, s.Relay.Phase)
	assert.Positive(t, s.Report.Resyncing)
	assert.Positive(t, s.LagUp(time.Now().Add(time.Second)))
	h.Remove("west")
	assert.Empty(t, h.Statuses())
}

// TestStuckAfterThree: a connection that is made again and again, and on which nothing passes, is stuck, with the direction and the object;
// until ten minutes have passed, or the agent is away.
func TestStuckAfterThree(t *testing.T) {
	t.Parallel()
	now := time.Now()
	connected := func() *book { return &book{connected: now.Add(-time.Hour)} }
	down := connected()
	for n := range pump.StuckAfter {
		assert.NotEqual(t, snapshot.RelayStuck, down.relay(now, nil).Phase, n)
		down.standsDown.Note(&pump.Standstill{Head: "core/v1/Service default/x"}, now)
	}
	told := down.relay(now, nil)
	assert.Equal(t, snapshot.RelayStuck, told.Phase)
	assert.Equal(t, snapshot.RelayBlocked, told.Reason.Code)
	assert.Equal(t, "the agent takes nothing of what the hub sends: 3 connections ended for that within 10 minutes, the last one at core/v1/Service default/x", told.Reason.What)
	assert.Equal(t, snapshot.RelayResync, down.relay(now.Add(pump.StuckWithin), nil).Phase)
	down.connected, down.lost = time.Time{}, now
	assert.Equal(t, snapshot.RelayLost, down.relay(now, nil).Phase)

	up := connected()
	up.admitted(&caller{stuck: pump.StuckAfter - 1})
	assert.Equal(t, snapshot.RelayResync, up.relay(now, nil).Phase)
	up.admitted(&caller{stuck: pump.StuckAfter, stuckAt: "core/v1/Pod a/b"})
	told = up.relay(time.Now(), nil)
	assert.Equal(t, snapshot.RelayStuck, told.Phase)
	assert.Equal(t, "the hub takes nothing of what the agent reports: 3 connections ended for that within 10 minutes, the last one at core/v1/Pod a/b", told.Reason.What)
	up.admitted(&caller{})
	assert.Equal(t, snapshot.RelayResync, up.relay(time.Now(), nil).Phase)
}
