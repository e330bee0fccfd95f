package telemetry

import (
	"context"
	"crypto/tls"
	"net/netip"
	"testing"
	"time"
)

// MostRead is how many proxies one agent reads at most.
const MostRead = maxProxies

// Every has a Local read each proxy once in a time, and ask pods by a function.
func (o LocalOptions) Every(every time.Duration, get func(ctx context.Context, address netip.AddrPort, secure *tls.Config, path string, limit int64) ([]byte, error)) LocalOptions {
	o.every, o.get = every, get
	return o
}

// Certificates are that of an agent, with the roots by which it knows proxies, and one of a proxy with an identity.
func Certificates(t testing.TB, identity string) (agent *tls.Config, proxy tls.Certificate) {
	t.Helper()
	ca := newAuthority(t)
	return &tls.Config{Certificates: []tls.Certificate{ca.give(t, "spiffe://cluster.local/ns/gloo-mesh/sa/agent")}, ClientCAs: ca.roots()}, ca.give(t, identity)
}

// First is the begin of the first message of a node.
func First(node string) []byte { return from(node) }
