package kube

import (
	"context"
	"net/http/httptrace"
	"sync/atomic"
)

// WithReached returns a context for requests to one server, and reports whether one of them got
// through to whatever listens there: a connection was made, and TLS began. If not, the address
// itself is what is wrong: it is unknown, refuses connections, or leads nowhere.
func WithReached(ctx context.Context) (context.Context, func() bool) {
	var reached atomic.Bool
	return httptrace.WithClientTrace(ctx, &httptrace.ClientTrace{
		TLSHandshakeStart: func() { reached.Store(true) },
		GotConn:           func(httptrace.GotConnInfo) { reached.Store(true) },
	}), reached.Load
}
