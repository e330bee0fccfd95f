package app

import (
	"context"
	"fmt"
	"net"
	"syscall"
)

// Dial says how an application connects. The zero value is for pods of a kubelet, whose
// traffic is redirected by its user.
type Dial struct {
	// Mark marks its packets, so that they are redirected to the proxy; 0 for none. Only
	// Linux has marks.
	Mark int
	// DNS is the port of this host where names are resolved; 0 for the usual resolver.
	DNS int
}

func (d Dial) dialer() *net.Dialer {
	dialer := &net.Dialer{}
	if d.Mark != 0 {
		dialer.Control = func(_, _ string, raw syscall.RawConn) error {
			var err error
			if controlErr := raw.Control(func(fd uintptr) { err = mark(fd, d.Mark) }); controlErr != nil {
				return controlErr
			}
			return err
		}
	}
	if d.DNS != 0 {
		dialer.Resolver = &net.Resolver{PreferGo: true, Dial: func(ctx context.Context, network, _ string) (net.Conn, error) {
			return new(net.Dialer).DialContext(ctx, network, fmt.Sprintf("127.0.0.1:%d", d.DNS))
		}}
	}
	return dialer
}
