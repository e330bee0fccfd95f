package hub

import (
	"context"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
)

// Revoker is what Agents may be that know when certificates do not count any more.
type Revoker interface {
	// Revoked calls tell for each cluster whose agent's certificates do not count any more, until ctx ends.
	Revoked(ctx context.Context, tell func(cluster string))
}

// errRevoked ends the streams of an agent whose certificate was revoked.
var errRevoked = status.Error(codes.Unauthenticated, "the certificate of the agent was revoked")

// Run disconnects agents whose certificates do not count any more, until ctx ends. One that has another certificate connects again.
func (h *Hub) Run(ctx context.Context) {
	if r, knows := h.options.Agents.(Revoker); knows {
		r.Revoked(ctx, h.disconnect)
	}
}

// disconnect ends all streams of a cluster.
func (h *Hub) disconnect(name string) {
	h.mu.Lock()
	c, standing := h.clusters[name], h.standing[name]
	h.mu.Unlock()
	if standing != nil {
		standing.endStream(errRevoked)
	}
	if c == nil {
		return
	}
	c.exchange.end(errRevoked)
	c.mu.Lock()
	defer c.mu.Unlock()
	c.endStream(errRevoked)
}

// endStream ends the stream that there is.
func (s *Standing) endStream(cause error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.end != nil {
		s.end(cause)
	}
}
