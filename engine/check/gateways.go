package check

import (
	"context"
	"errors"
	"net"
	"strconv"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/meshctl/meshctl/engine/explain"
	"github.com/meshctl/meshctl/engine/snapshot"
)

const (
	// parallelDials is high because dials wait more than they work.
	parallelDials = 512
	// dialTimeout bounds the dials of all gateways: their addresses are for the proxies of other clusters, and often lead nowhere
	// from elsewhere.
	dialTimeout = time.Second
)

// Gateways dials all addresses of the east-west gateways of meshes at the same time, for at most a second, or the timeout if it is
// shorter.
func Gateways(ctx context.Context, meshes []*snapshot.MeshPlan, timeout time.Duration) []explain.CheckedGateway {
	timeout = min(timeout, dialTimeout)
	ctx, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	out := []explain.CheckedGateway{}
	for _, m := range meshes {
		for i := range m.Gateways {
			g := &m.Gateways[i]
			if g.Shared {
				continue // another mesh has it, too
			}
			for _, address := range g.Addresses {
				out = append(out, explain.CheckedGateway{
					Mesh: m.Ref, Cluster: m.Cluster, Address: net.JoinHostPort(address, strconv.FormatUint(uint64(g.Port), 10)),
				})
			}
		}
	}
	group := errgroup.Group{}
	group.SetLimit(parallelDials)
	dialer := net.Dialer{}
	for i := range out {
		group.Go(func() error {
			conn, err := dialer.DialContext(ctx, "tcp", out[i].Address)
			if err != nil {
				out[i].Unanswered = why(err, timeout)
				return nil
			}
			return conn.Close()
		})
	}
	_ = group.Wait() // closing a connection that was made
	return out
}

// why says why a connection was not made, without the address, which is known.
func why(err error, timeout time.Duration) string {
	var timedOut net.Error
	if errors.As(err, &timedOut) && timedOut.Timeout() {
		return "no answer within " + timeout.String()
	}
	for inner := errors.Unwrap(err); inner != nil; inner = errors.Unwrap(inner) {
		err = inner
	}
	return err.Error()
}
