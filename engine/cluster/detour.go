package cluster

import (
	"context"
	"net"
	"sync/atomic"
	"time"

	"k8s.io/apimachinery/pkg/types"
)

// Detour finds other addresses, as HOST:PORT, of the API server whose kube-system has a UID, for those
// who read clusters from elsewhere than serve, which can dial what is stored. Only the connection takes
// the detour: the credential and the certificate that is expected are those that are stored, so that
// a wrong address gives nothing away.
type Detour func(ctx context.Context, server string, uid types.UID) []string

// dialFunc is that of a net.Dialer.
type dialFunc func(ctx context.Context, network, address string) (net.Conn, error)

// directTimeout is how long an address may take to accept a connection until another is tried.
const directTimeout = time.Second

// detouring dials the stored address and, if it leads nowhere, those of a detour. Once one has accepted
// a connection, it is tried first.
func detouring(dial dialFunc, others func(context.Context) []string) dialFunc {
	var taken atomic.Pointer[string]
	return func(ctx context.Context, network, address string) (net.Conn, error) {
		if other := taken.Load(); other != nil {
			if conn, err := dial(ctx, network, *other); err == nil {
				return conn, nil
			}
		}
		direct, cancel := context.WithTimeout(ctx, directTimeout)
		defer cancel()
		conn, err := dial(direct, network, address)
		if err == nil || ctx.Err() != nil {
			return conn, err
		}
		for _, other := range others(ctx) {
			if conn, otherErr := dial(ctx, network, other); otherErr == nil {
				taken.Store(&other)
				return conn, nil
			}
		}
		return nil, err
	}
}

// around is how connections to an entry's cluster are made; nil for the usual way.
func (r *Registry) around(e *entry, c *Credential) func(dialFunc) dialFunc {
	if r.detour == nil {
		return nil
	}
	return func(dial dialFunc) dialFunc {
		return detouring(dial, func(ctx context.Context) []string {
			r.mu.Lock()
			uid := e.expected()
			r.mu.Unlock()
			if uid == "" {
				return nil
			}
			return r.detour(ctx, c.Server, uid)
		})
	}
}
