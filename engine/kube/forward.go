package kube

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/netip"
	"strconv"
	"strings"
	"time"

	authenticationv1 "k8s.io/api/authentication/v1"
	authorizationv1 "k8s.io/api/authorization/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/portforward"
	"k8s.io/client-go/transport/spdy"
	"k8s.io/streaming/pkg/httpstream"
)

// TooBigError is returned for an answer that is bigger than its reader takes.
type TooBigError struct{ Limit int64 }

func (e *TooBigError) Error() string {
	return fmt.Sprintf("the answer is bigger than %d MiB", e.Limit>>20)
}

// GetFromPod gets a page of what a pod serves on its loopback interface, by HTTP, as over `kubectl port-forward` (Kubernetes:
// pods/portforward), but without a local port. Ctx bounds how long that takes, and limit how many bytes are read; more is a TooBigError.
func GetFromPod(ctx context.Context, config *rest.Config, namespace, pod string, port uint32, path string, limit int64) ([]byte, error) {
	connection, err := dialPod(ctx, config, namespace, pod)
	if err != nil {
		return nil, err
	}
	defer func() { _ = connection.Close() }()
	failed := make(chan error, 1)
	transport := &http.Transport{DisableKeepAlives: true, DialContext: func(context.Context, string, string) (net.Conn, error) {
		return openStream(connection, port, failed)
	}}
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, fmt.Sprintf("http://localhost:%d/%s", port, path), nil)
	if err != nil {
		return nil, err
	}
	data, err := get(transport, request, limit)
	if err == nil || ctx.Err() != nil {
		return data, errors.Join(err, ctx.Err())
	}
	// What the pod's node says of it is sent on another stream.
	select {
	case why := <-failed:
		if why != nil {
			return nil, why
		}
	case <-time.After(time.Second):
	case <-ctx.Done():
	}
	return nil, err
}

// GetFromAddress gets a page that an address serves, by HTTP: of who is there, and of nobody else, as no proxy is asked and no redirection is
// followed. With a TLS configuration, it is got by HTTPS. Ctx and limit are as in GetFromPod.
func GetFromAddress(ctx context.Context, address netip.AddrPort, secure *tls.Config, path string, limit int64) ([]byte, error) {
	transport := &http.Transport{DisableKeepAlives: true, DisableCompression: true, TLSClientConfig: secure}
	scheme := "http"
	if secure != nil {
		scheme = "https"
	}
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, fmt.Sprintf("%s://%s/%s", scheme, address, path), nil)
	if err != nil {
		return nil, err
	}
	return get(transport, request, limit)
}

func get(transport http.RoundTripper, request *http.Request, limit int64) ([]byte, error) {
	response, err := transport.RoundTrip(request)
	if err != nil {
		return nil, err
	}
	defer func() { _ = response.Body.Close() }()
	if response.StatusCode != http.StatusOK {
		return nil, fmt.Errorf("it answers %s", response.Status)
	}
	data, err := io.ReadAll(io.LimitReader(response.Body, limit+1))
	if int64(len(data)) > limit {
		return nil, &TooBigError{Limit: limit}
	}
	return data, err
}

// MayForward reports whether the user of a configuration may forward ports of a pod (Kubernetes: create pods/portforward); true if that
// cannot be asked. A connection that is refused for that fails with an error that does not say so to programs.
func MayForward(ctx context.Context, config *rest.Config, namespace, pod string) bool {
	allowed, err := AskForward(ctx, config, namespace, pod)
	return err != nil || allowed
}

// AskForward asks the API server whether the user of a configuration may forward ports of a pod; without names, of all pods.
func AskForward(ctx context.Context, config *rest.Config, namespace, pod string) (bool, error) {
	client, err := NewClientset(config)
	if err != nil {
		return false, err
	}
	review := &authorizationv1.SelfSubjectAccessReview{Spec: authorizationv1.SelfSubjectAccessReviewSpec{ResourceAttributes: &authorizationv1.ResourceAttributes{
		Verb: "create", Resource: "pods", Subresource: "portforward", Namespace: namespace, Name: pod,
	}}}
	answer, err := client.AuthorizationV1().SelfSubjectAccessReviews().Create(ctx, review, metav1.CreateOptions{})
	if err != nil {
		return false, err
	}
	return answer.Status.Allowed, nil
}

// Account is the name by which an API server knows the user of a configuration; empty if it does not say.
func Account(ctx context.Context, config *rest.Config) string {
	client, err := NewClientset(config)
	if err != nil {
		return ""
	}
	answer, err := client.AuthenticationV1().SelfSubjectReviews().Create(ctx, &authenticationv1.SelfSubjectReview{}, metav1.CreateOptions{})
	if err != nil {
		return ""
	}
	return answer.Status.UserInfo.Username
}

// dialPod connects to a pod by way of its API server: over a WebSocket, or by SPDY where the server has none for it.
func dialPod(ctx context.Context, config *rest.Config, namespace, pod string) (httpstream.Connection, error) {
	client, err := NewClientset(config)
	if err != nil {
		return nil, err
	}
	url := client.CoreV1().RESTClient().Post().Resource("pods").Namespace(namespace).Name(pod).SubResource("portforward").URL()
	if upgrading := upgradingOf(config.Transport); upgrading != nil {
		return upgrade(ctx, upgrading, url)
	}
	tunnel, err := portforward.NewSPDYOverWebsocketDialerForStreaming(url, config)
	if err != nil {
		return nil, err
	}
	transport, upgrader, err := spdy.RoundTripperFor(config)
	if err != nil {
		return nil, err
	}
	dialer := portforward.NewFallbackDialerForStreaming(tunnel, spdy.NewDialerForStreaming(upgrader, &http.Client{Transport: RefuseRedirects(transport)}, http.MethodPost, url), func(err error) bool {
		return httpstream.IsUpgradeFailure(err) || httpstream.IsHTTPSProxyError(err)
	})
	type dialled struct {
		connection httpstream.Connection
		err        error
	}
	done := make(chan dialled, 1)
	go func() {
		connection, _, err := dialer.Dial(portforward.PortForwardProtocolV1Name)
		done <- dialled{connection, err}
	}()
	select {
	case d := <-done:
		return d.connection, d.err
	case <-ctx.Done():
		go func() { // it takes no context
			if d := <-done; d.err == nil {
				_ = d.connection.Close()
			}
		}()
		return nil, ctx.Err()
	}
}

// openStream opens a connection to a port of the pod. Failed gets what the node says of it: nil if it ends without an error.
func openStream(connection httpstream.Connection, port uint32, failed chan<- error) (net.Conn, error) {
	headers := http.Header{}
	headers.Set(corev1.StreamType, corev1.StreamTypeError)
	headers.Set(corev1.PortHeader, strconv.FormatUint(uint64(port), 10))
	headers.Set(corev1.PortForwardRequestIDHeader, "0")
	errorStream, err := connection.CreateStream(headers)
	if err != nil {
		return nil, err
	}
	_ = errorStream.Close() // nothing is written to it
	go func() {
		message, err := io.ReadAll(io.LimitReader(errorStream, 4096))
		if text := strings.TrimSpace(string(message)); text != "" {
			err = errors.New(text)
		}
		failed <- err
	}()
	headers.Set(corev1.StreamType, corev1.StreamTypeData)
	stream, err := connection.CreateStream(headers)
	if err != nil {
		return nil, err
	}
	return &podConn{stream}, nil
}

// podConn is a stream as a connection. Its users end it instead of setting deadlines.
type podConn struct{ httpstream.Stream }

// Close ends both directions.
func (c *podConn) Close() error { return c.Reset() }

// LocalAddr implements net.Conn.
func (*podConn) LocalAddr() net.Addr { return &net.TCPAddr{} }

// RemoteAddr implements net.Conn.
func (*podConn) RemoteAddr() net.Addr { return &net.TCPAddr{} }

// SetDeadline implements net.Conn.
func (*podConn) SetDeadline(time.Time) error { return nil }

// SetReadDeadline implements net.Conn.
func (*podConn) SetReadDeadline(time.Time) error { return nil }

// SetWriteDeadline implements net.Conn.
func (*podConn) SetWriteDeadline(time.Time) error { return nil }
