package cluster

import (
	"context"
	"crypto/x509"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/url"
	"strings"
	"time"

	"k8s.io/client-go/rest"
)

// endpoint is what the stored kubeconfig will say about the server: the
// caller's own way to it, or else the given address. The certificate is always
// verified: if it does not cover the address, the name that it does cover is
// expected there instead, and the note says so.
func endpoint(ctx context.Context, config *rest.Config, address string, timeout time.Duration) (c *Credential, note string, err error) {
	own, err := ownEndpoint(config)
	if err != nil {
		return nil, "", err
	}
	c = own
	if address != "" {
		if c, err = own.at(address); err != nil {
			return nil, "", err
		}
	}
	ctx, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	err = handshake(ctx, c)
	var wrongName x509.HostnameError
	if errors.As(err, &wrongName) && address != "" {
		c.ServerName = hostOf(own.ServerName, own.Server)
		note = fmt.Sprintf("the certificate of %s does not cover that name; it is expected to cover %s instead (tls-server-name)", c.Server, c.ServerName)
		err = handshake(ctx, c)
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
func ownEndpoint(config *rest.Config) (*Credential, error) {
	if config.Insecure {
		return nil, errors.New("the remote context switches off the verification of the server's certificate; " +
			"meshctl stores no such credential: put the cluster's CA into certificate-authority-data")
	}
	loaded := rest.CopyConfig(config)
	if err := rest.LoadTLSFiles(loaded); err != nil {
		return nil, fmt.Errorf("the remote context's certificate files: %w", err)
	}
	server, reason := checkServer(loaded.Host)
	if reason != "" {
		return nil, fmt.Errorf("the remote context cannot be stored: %s (%s)", reason, loaded.Host)
	}
	return &Credential{Server: server, ServerName: loaded.ServerName, CA: loaded.CAData}, nil
}

// at is the same server at another HOST[:PORT]; the port stays if none is given.
func (c *Credential) at(address string) (*Credential, error) {
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
	server, reason := checkServer(u.String())
	if reason != "" {
		return nil, fmt.Errorf("--api-server-address %q: %s", address, strings.TrimPrefix(reason, "its "))
	}
	return &Credential{Server: server, ServerName: c.ServerName, CA: c.CA}, nil
}

// handshake connects as a client of the stored kubeconfig will, and verifies
// the server's certificate. It shows no credential: any answer will do.
func handshake(ctx context.Context, c *Credential) error {
	way, err := newClient(c, "")
	if err != nil {
		return err
	}
	defer way.close()
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, c.Server+"/version", http.NoBody)
	if err != nil {
		return fmt.Errorf("server %s: %w", c.Server, err)
	}
	response, err := way.transport.RoundTrip(request)
	if err != nil {
		return fmt.Errorf("connecting: %w", err)
	}
	if err := response.Body.Close(); err != nil {
		return fmt.Errorf("closing: %w", err)
	}
	return nil
}
