package app

import (
	"context"
	"errors"
	"net"
	"strconv"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// serve starts an application on two free ports, which it returns.
func serve(t *testing.T) (http, tcp int) {
	t.Helper()
	a := &application{Options: Options{Identity: Identity{Cluster: "c", Namespace: "n", Workload: "w", Pod: "p"}}}
	server := a.httpServer()
	var ports [2]int
	for i := range ports {
		listener, err := net.Listen("tcp4", "127.0.0.1:0")
		require.NoError(t, err)
		ports[i] = listener.Addr().(*net.TCPAddr).Port
		t.Cleanup(func() { _ = listener.Close() })
		if i == 0 {
			go func() { _ = server.Serve(listener) }()
		} else {
			go func() { _ = a.serveTCP(listener) }()
		}
	}
	return ports[0], ports[1]
}

// TestSend: each protocol is answered with who answers.
func TestSend(t *testing.T) {
	t.Parallel()
	http, tcp := serve(t)
	for url, status := range map[string]int{
		"http://127.0.0.1:" + strconv.Itoa(http) + "/a": 200,
		"grpc://127.0.0.1:" + strconv.Itoa(http):        0,
		"tcp://127.0.0.1:" + strconv.Itoa(tcp):          0,
	} {
		t.Run(url, func(t *testing.T) {
			t.Parallel()
			answered := 0
			require.NoError(t, Send(t.Context(), Call{URL: url, Count: 12, Parallel: 3}, Dial{}, func(r Report) error {
				for _, o := range r.Groups {
					assert.Equal(t, Identity{Cluster: "c", Namespace: "n", Workload: "w", Pod: "p"}, o.Identity)
					assert.Equal(t, status, o.Status)
					assert.Empty(t, o.Error)
					answered += len(o.Micros)
				}
				return nil
			}))
			assert.Equal(t, 12, answered)
		})
	}
	require.ErrorContains(t, Send(t.Context(), Call{URL: "ftp://a"}, Dial{}, nil), "its scheme is not http, grpc or tcp")
}

// TestSendEnds: it ends with its context, and when nobody takes its reports.
func TestSendEnds(t *testing.T) {
	t.Parallel()
	http, _ := serve(t)
	call := Call{URL: "http://127.0.0.1:" + strconv.Itoa(http), EveryMs: 1}
	ctx, cancel := context.WithCancel(t.Context())
	require.NoError(t, Send(ctx, call, Dial{}, func(Report) error { cancel(); return nil }))
	gone := errors.New("gone")
	require.ErrorIs(t, Send(t.Context(), call, Dial{}, func(Report) error { return gone }), gone)
}
