package local

import "context"

// Create and Launch are the two halves of Start.
var Create = create

// Launch starts etcd and the API server.
func (c *Cluster) Launch(ctx context.Context) error {
	return c.start(ctx, Options{APIServerOnly: true})
}

// Port returns the port of that name.
func (c *Cluster) Port(name string) int { return c.port(name) }
