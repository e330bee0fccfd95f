package registration

import (
	"context"
	"crypto/x509"
	"errors"
	"fmt"
	"net"
	"net/url"
	"strings"
	"time"

	"k8s.io/client-go/rest"

	"github.com/meshctl/meshctl/engine/cluster"
)

// endpoint is what the stored kubeconfig will say about the server: the
// caller's own way to it, or else the given address. The certificate is always
// verified: if it does not cover the address, the name that it does cover is
// expected there instead, and the note says so.
func endpoint(ctx context.Context, config *rest.Config, address string, timeout time.Duration) (c *cluster.Credential, note string, err error) {
	own, err := ownEndpoint(config)
	if err != nil {
		return nil, "", err
	}
	c = own
	if address != "" {
		if c, err = moved(own, address); err != nil {
			return nil, "", err
		}
	}
	ctx, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	err = cluster.Handshake(ctx, c)
	var wrongName x509.HostnameError
	if errors.As(err, &wrongName) && address != "" {
		c.ServerName = hostOf(own.ServerName, own.Server)
		note = fmt.Sprintf("the certificate of %s does not cover that name; it is expected to cover %s instead (tls-server-name)", c.Server, c.ServerName)
		err = cluster.Handshake(ctx, c)
	}
	if err != nil {
		if ctx.Err() != nil {
			err = ctx.Err()
		}
		return nil, "", &UnreachableError{Server: "the address to store (" + c.Server + ")", Err: err}
	}
	return c, note, nil
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
		return nil, fmt.Errorf("the remote context cannot be stored: %s (%s)", reason, loaded.Host)
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
		return nil, fmt.Errorf("--api-server-address %q: %s", address, strings.TrimPrefix(reason, "its "))
	}
	return &cluster.Credential{Server: server, ServerName: c.ServerName, CA: c.CA}, nil
}
