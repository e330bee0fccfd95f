package kube

import (
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"strings"
	"time"

	"k8s.io/client-go/tools/portforward"
	"k8s.io/streaming/pkg/httpstream"
	"k8s.io/streaming/pkg/httpstream/spdy"
)

// Upgrading is a transport that can turn connections of HTTP/1.1 into others. client-go does not dial through transports that it did not
// make, so that what these check about a server would not be checked for the streams to pods.
type Upgrading interface {
	// Upgrading sends requests with the header Upgrade, each on a connection of its own.
	Upgrading() http.RoundTripper
}

// upgradingOf finds an Upgrading below others; nil if there is none.
func upgradingOf(transport http.RoundTripper) http.RoundTripper {
	for transport != nil {
		if found, ok := transport.(Upgrading); ok {
			return found.Upgrading()
		}
		wrapper, ok := transport.(interface{ WrappedRoundTripper() http.RoundTripper })
		if !ok {
			return nil
		}
		transport = wrapper.WrappedRoundTripper()
	}
	return nil
}

// upgrade connects to a pod by SPDY (Kubernetes: pods/portforward, protocol portforward.k8s.io).
func upgrade(ctx context.Context, transport http.RoundTripper, to *url.URL) (httpstream.Connection, error) {
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, to.String(), nil)
	if err != nil {
		return nil, err
	}
	request.Header.Set("Connection", "Upgrade")
	request.Header.Set("Upgrade", "SPDY/3.1")
	request.Header.Set("X-Stream-Protocol-Version", portforward.PortForwardProtocolV1Name)
	response, err := transport.RoundTrip(request)
	if err != nil {
		return nil, err
	}
	stream, duplex := response.Body.(io.ReadWriteCloser)
	if response.StatusCode != http.StatusSwitchingProtocols || !duplex {
		defer func() { _ = response.Body.Close() }()
		text, _ := io.ReadAll(io.LimitReader(response.Body, 1024))
		return nil, fmt.Errorf("the API server answers %s: %s", response.Status, strings.TrimSpace(string(text)))
	}
	return spdy.NewClientConnection(&upgraded{stream})
}

// upgraded is what is left of a connection that was upgraded. Its users end it instead of setting deadlines.
type upgraded struct{ io.ReadWriteCloser }

// LocalAddr implements net.Conn.
func (*upgraded) LocalAddr() net.Addr { return &net.TCPAddr{} }

// RemoteAddr implements net.Conn.
func (*upgraded) RemoteAddr() net.Addr { return &net.TCPAddr{} }

// SetDeadline implements net.Conn.
func (*upgraded) SetDeadline(time.Time) error { return nil }

// SetReadDeadline implements net.Conn.
func (*upgraded) SetReadDeadline(time.Time) error { return nil }

// SetWriteDeadline implements net.Conn.
func (*upgraded) SetWriteDeadline(time.Time) error { return nil }
