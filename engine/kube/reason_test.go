package kube_test

import (
	"context"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"os"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/meshctl/meshctl/engine/kube"
	"github.com/meshctl/meshctl/engine/snapshot"
)

// reset is a connection that ended, as a request returns it; its local port is
// another one each time.
func reset(port int) error {
	return &url.Error{Op: "Get", URL: fmt.Sprintf("https://x/apis?timeoutSeconds=%d", port), Err: &net.OpError{
		Op: "read", Net: "tcp", Source: &net.TCPAddr{Port: port}, Err: os.NewSyscallError("read", syscall.ECONNRESET),
	}}
}

// lateError is like that of a TLS handshake (net/http).
type lateError struct{}

func (lateError) Error() string   { return "TLS handshake timeout" }
func (lateError) Timeout() bool   { return true }
func (lateError) Temporary() bool { return true }

func TestReasonsAreSentencesThatDoNotVary(t *testing.T) {
	t.Parallel()
	pods := schema.GroupResource{Resource: "pods"}
	unavailable := &apierrors.StatusError{ErrStatus: metav1.Status{Code: http.StatusServiceUnavailable, Message: "[+]ping ok\n[-]etcd failed"}}
	for want, err := range map[string]error{
		"S rejects the credential (401 Unauthorized)":            apierrors.NewUnauthorized("x"),
		"S is not ready (HTTP 503)":                              fmt.Errorf("probe: %w", unavailable),
		"pods is forbidden: because":                             apierrors.NewForbidden(pods, "", errors.New("because")),
		"the certificate of S is signed by an unknown authority": &url.Error{Err: x509.UnknownAuthorityError{}},
		"the certificate of S is for other host names":           x509.HostnameError{Certificate: &x509.Certificate{}, Host: "x"},
		"the certificate of S has expired or is not valid yet":   x509.CertificateInvalidError{Reason: x509.Expired},
		"the certificate of S is not valid":                      x509.CertificateInvalidError{Reason: x509.NotAuthorizedToSign},
		"the host name of S cannot be resolved":                  &net.DNSError{Name: "x"},
		"S does not answer in time":                              fmt.Errorf("get: %w", context.DeadlineExceeded),
		"S refuses connections":                                  &net.OpError{Op: "dial", Err: os.NewSyscallError("connect", syscall.ECONNREFUSED)},
		"S cannot be reached: connection reset by peer":          reset(40001),
		"S cannot be reached: EOF":                               &url.Error{Op: "Get", URL: "https://x/apis?timeoutSeconds=478", Err: io.EOF},
	} {
		assert.Equal(t, want, kube.Reason("S", err))
	}
	assert.Equal(t, "S does not answer in time", kube.Reason("S", &url.Error{Op: "Get", Err: fmt.Errorf("probe: %w", lateError{})}))
	assert.Equal(t, kube.Message(reset(40001)), kube.Message(reset(52344)))
	assert.Equal(t, "the API server refuses connections", kube.Message(syscall.ECONNREFUSED))
	assert.Equal(t, "[+]ping ok\n[-]etcd failed", kube.Message(unavailable), "what a webhook or validation said comes with a status")
}

// TestCauses: programs get a code for what people read.
func TestCauses(t *testing.T) {
	t.Parallel()
	status := func(code int32) error { return &apierrors.StatusError{ErrStatus: metav1.Status{Code: code}} }
	for name, c := range map[string]struct {
		err  error
		want snapshot.Code
	}{
		"401":                {fmt.Errorf("probe: %w", apierrors.NewUnauthorized("x")), snapshot.CredentialRefused},
		"403":                {apierrors.NewForbidden(schema.GroupResource{Resource: "pods"}, "", errors.New("because")), snapshot.PermissionsMissing},
		"404":                {status(http.StatusNotFound), ""},
		"429":                {status(http.StatusTooManyRequests), snapshot.ServerUnanswered},
		"503":                {status(http.StatusServiceUnavailable), snapshot.ServerUnanswered},
		"unknown authority":  {&url.Error{Err: x509.UnknownAuthorityError{}}, snapshot.CertificateUntrusted},
		"another name":       {x509.HostnameError{Certificate: &x509.Certificate{}, Host: "x"}, snapshot.CertificateUntrusted},
		"expired":            {x509.CertificateInvalidError{Reason: x509.Expired}, snapshot.CertificateUntrusted},
		"no such host":       {&net.DNSError{Name: "x"}, snapshot.NameUnresolved},
		"no answer":          {context.DeadlineExceeded, snapshot.ServerUnanswered},
		"connection refused": {syscall.ECONNREFUSED, snapshot.ServerUnanswered},
	} {
		assert.Equal(t, c.want, kube.Cause(c.err), name)
	}
}

// TestNextSteps: nobody is sent to look at permissions where nothing answers, or at a server that answered.
func TestNextSteps(t *testing.T) {
	t.Parallel()
	expired := apierrors.NewUnauthorized("Unauthorized")
	for name, c := range map[string]struct {
		err  error
		want string
	}{
		"nothing listens": {syscall.ECONNREFUSED, "that the server runs"},
		"no answer":       {context.DeadlineExceeded, "that the server runs"},
		"not ready":       {apierrors.NewServiceUnavailable("starting"), "that the server runs"},
		"name":            {&net.DNSError{Err: "no such host"}, "the network"},
		"authority":       {x509.UnknownAuthorityError{}, "the context"},
		"not logged in":   {expired, "log in again"},
		"not allowed":     {apierrors.NewForbidden(schema.GroupResource{Resource: "pods"}, "x", errors.New("no")), "your permissions"},
	} {
		assert.Contains(t, kube.NextStep(c.err), c.want, name)
		advised := kube.WithNextStep(c.err)
		require.ErrorIs(t, advised, c.err, name)
		assert.Equal(t, c.err.Error()+"; "+kube.NextStep(c.err), advised.Error(), name)
	}
}

func TestBackoff(t *testing.T) {
	t.Parallel()
	var pauses []time.Duration
	for failures := range 6 {
		pauses = append(pauses, kube.Backoff(time.Second, 5*time.Second, failures))
	}
	assert.Equal(t, []time.Duration{0, time.Second, 2 * time.Second, 4 * time.Second, 5 * time.Second, 5 * time.Second}, pauses)
	assert.Equal(t, time.Minute, kube.Backoff(time.Second, time.Minute, 1<<40))
	for range 100 {
		d := kube.Jitter(time.Second)
		assert.GreaterOrEqual(t, d, time.Second)
		assert.LessOrEqual(t, d, 1250*time.Millisecond)
	}
}

func TestPath(t *testing.T) {
	t.Parallel()
	assert.Equal(t, []string{"/api", "v1", "pods"}, kube.Path(snapshot.Pod, "", "", ""))
	assert.Equal(t, []string{"/apis", "networking.istio.io", "v1", "namespaces", "x", "sidecars", "a", "status"},
		kube.Path(snapshot.Sidecar, "x", "a", "status"))
}

func TestCatch(t *testing.T) {
	t.Parallel()
	require.NoError(t, kube.Catch(func() {}))
	err := kube.Catch(func() { panic("broken") })
	require.EqualError(t, err, "panic: broken")
	var panicked *kube.PanicError
	require.ErrorAs(t, err, &panicked)
	assert.Contains(t, string(panicked.Stack), "kube_test.TestCatch")
}
