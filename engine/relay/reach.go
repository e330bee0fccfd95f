package relay

import (
	"context"
	"crypto/tls"
	"fmt"
	"net"
	"net/http"
	"net/url"
	"time"

	"github.com/meshctl/meshctl/engine/snapshot"
)

// reachTimeout bounds each step of a connection that is tried.
const reachTimeout = 3 * time.Second

// Reach makes the steps of a connection to HOST:PORT of a hub one by one, and returns the first that fails: its name, TCP, or TLS, which is
// left out without a config. The code is empty if none fails; and if a proxy is set in the environment, behind which nothing can be seen.
func Reach(ctx context.Context, hub string, config *tls.Config) (snapshot.Code, error) {
	host, _, err := net.SplitHostPort(hub)
	if err != nil {
		return snapshot.RelayUnresolved, fmt.Errorf("%q is no HOST:PORT", hub)
	}
	if proxy, err := http.ProxyFromEnvironment(&http.Request{URL: &url.URL{Scheme: "https", Host: hub}}); err == nil && proxy != nil {
		return "", nil // gRPC connects through it, and says what fails
	}
	bounded, cancel := context.WithTimeout(ctx, reachTimeout)
	defer cancel()
	if _, err := net.DefaultResolver.LookupHost(bounded, host); err != nil {
		return snapshot.RelayUnresolved, fmt.Errorf("DNS: %w", err)
	}
	bounded, cancel = context.WithTimeout(ctx, reachTimeout)
	defer cancel()
	conn, err := (&net.Dialer{}).DialContext(bounded, "tcp", hub)
	if err != nil {
		return snapshot.RelayUnreachable, fmt.Errorf("TCP: %w", err)
	}
	defer func() { _ = conn.Close() }()
	if config == nil {
		return "", nil
	}
	bounded, cancel = context.WithTimeout(ctx, reachTimeout)
	defer cancel()
	config = config.Clone()
	config.NextProtos = []string{"h2"}
	if err := tls.Client(conn, config).HandshakeContext(bounded); err != nil {
		return snapshot.RelayNotTrusted, fmt.Errorf("TLS: %w", err)
	}
	return "", nil
}
