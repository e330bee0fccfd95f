package registration

import (
	"cmp"
	"context"
	"crypto/x509"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"net/url"
	"strings"

	"k8s.io/client-go/rest"

	"github.com/meshctl/meshctl/engine/cluster"
	"github.com/meshctl/meshctl/engine/kube"
)

// endpointFinder finds out how serve, and who registers, reach the API server.
type endpointFinder struct{ *registration }

func endpointsFor(r *registration) endpointFinder { return endpointFinder{r} }

// findEndpoint finds what the stored kubeconfig will say about the server, and how the caller
// reaches it: by its own way, or else at the given address. The certificate is always verified:
// if it does not cover the address, the name that it does cover is expected there instead, and
// a note says so.
func (r endpointFinder) findEndpoint(ctx context.Context) error {
	if r.inside {
		return r.findInside(ctx)
	}
	own, err := ownEndpoint(r.RemoteConfig)
	if err != nil {
		return err
	}
	stored := own
	if r.APIServerAddress != "" {
		if stored, err = moved(own, r.APIServerAddress); err != nil {
			return err
		}
	}
	_, err = r.dialStored(ctx, own, stored)
	return err
}

// dialStored connects to what will be stored, as the one who will use it would. It reports whether
// the server was reached; an error says that it was not, or is the wrong one.
func (r endpointFinder) dialStored(ctx context.Context, own, stored *cluster.Credential) (reached bool, err error) {
	r.endpoint, r.dialled = stored, stored
	reached, err = r.handshake(ctx, stored)
	var wrongName x509.HostnameError
	if errors.As(err, &wrongName) && stored != own {
		r.expectName(own)
		_, err = r.handshake(ctx, stored)
	}
	if err != nil {
		return reached, &UnreachableError{Server: "the address to store (" + stored.Server + ")", Err: err}
	}
	return true, nil
}

// expectName makes whoever uses the stored address expect the name of the caller's way there.
func (r endpointFinder) expectName(own *cluster.Credential) {
	r.endpoint.ServerName = hostOf(own.ServerName, own.Server)
	r.report.note(fmt.Sprintf("the certificate of %s does not cover that name; it is expected to cover %s instead (tls-server-name)",
		r.endpoint.Server, r.endpoint.ServerName))
}

// handshake is cluster.Handshake within the time for a first answer. It reports whether a server
// was reached, whichever that is.
func (r endpointFinder) handshake(ctx context.Context, c *cluster.Credential) (bool, error) {
	ctx, cancel := context.WithTimeout(ctx, r.Timeout)
	defer cancel()
	ctx, reached := kube.WithReached(ctx)
	err := cluster.Handshake(ctx, c)
	if err != nil && ctx.Err() != nil {
		err = ctx.Err()
	}
	return reached(), err
}

// with is the way on which the caller reaches the server, with the token of a credential.
func (r endpointFinder) with(c *cluster.Credential) *cluster.Credential {
	out := *r.dialled
	out.Token = c.Token
	return &out
}

// ownEndpoint reads server, server name and CA from the caller's configuration.
func ownEndpoint(config *rest.Config) (*cluster.Credential, error) {
	if config.Insecure {
		return nil, errors.New("the remote context switches off the verification of the server's certificate; " +
			"meshctl stores no such credential: put the cluster's CA into certificate-authority-data")
	}
	loaded := rest.CopyConfig(config)
	if err := rest.LoadTLSFiles(loaded); err != nil {
		return nil, fmt.Errorf("the remote context's certificate files: %w", err)
	}
	server, reason := cluster.CheckServer(loaded.Host)
	if reason != "" {
		return nil, fmt.Errorf("the remote context cannot be stored: its %s (%s)", reason, loaded.Host)
	}
	return &cluster.Credential{Server: server, ServerName: loaded.ServerName, CA: loaded.CAData}, nil
}

// moved is the same server at another HOST[:PORT]; the port stays if none is given.
func moved(c *cluster.Credential, address string) (*cluster.Credential, error) {
	u, err := url.Parse(c.Server)
	if err != nil {
		return nil, fmt.Errorf("server %s: %w", c.Server, err)
	}
	given, err := url.Parse("//" + strings.TrimPrefix(address, "https://"))
	if err != nil || given.Hostname() == "" || strings.Trim(given.Path, "/") != "" {
		return nil, fmt.Errorf("--api-server-address %q: want HOST or HOST:PORT", address)
	}
	port := given.Port()
	if port == "" {
		port = u.Port()
	}
	u.Host = given.Host
	if port != "" {
		u.Host = net.JoinHostPort(given.Hostname(), port)
	}
	server, reason := cluster.CheckServer(u.String())
	if reason != "" {
		return nil, fmt.Errorf("--api-server-address %q: %s", address, reason)
	}
	return &cluster.Credential{Server: server, ServerName: c.ServerName, CA: c.CA}, nil
}

// isLoopback reports whether a host name stands for the machine that uses it.
func isLoopback(host string) bool {
	host = strings.ToLower(strings.TrimSuffix(host, "."))
	if host == "localhost" || strings.HasSuffix(host, ".localhost") {
		return true // RFC 6761, 6.3
	}
	addr, err := netip.ParseAddr(host)
	addr = addr.Unmap()
	return err == nil && (addr.IsLoopback() || addr.IsUnspecified())
}

// hostPort is the HOST:PORT of a server; empty if it is not a URL.
func hostPort(server string) string {
	u, err := url.Parse(server)
	if err != nil || u.Host == "" {
		return ""
	}
	return net.JoinHostPort(u.Hostname(), cmp.Or(u.Port(), "443"))
}
