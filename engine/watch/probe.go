package watch

import (
	"context"
	"crypto/x509"
	"errors"
	"fmt"
	"net"
	"net/http"
	"syscall"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
)

// probe asks whether the API server answers and is ready. A server that
// answers, but forbids or does not know the question, is taken as ready.
func (c *clients) probe(ctx context.Context, timeout time.Duration) error {
	bounded, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	_, err := c.get(bounded, "/readyz")
	var status apierrors.APIStatus
	if !errors.As(err, &status) {
		return err
	}
	switch code := status.Status().Code; {
	case code == http.StatusUnauthorized, code >= http.StatusInternalServerError:
		return err
	}
	return nil
}

// reason says in stable words why a server cannot be used: nothing in it
// changes from try to try, as times and local ports would.
func reason(host string, err error) string {
	var (
		status    apierrors.APIStatus
		authority x509.UnknownAuthorityError
		hostname  x509.HostnameError
		invalid   x509.CertificateInvalidError
		resolve   *net.DNSError
		network   net.Error
		number    syscall.Errno
	)
	switch {
	case errors.As(err, &status):
		switch code := status.Status().Code; {
		case code == http.StatusUnauthorized:
			return host + " refuses the stored credential (401 Unauthorized)"
		case code >= http.StatusInternalServerError:
			return fmt.Sprintf("%s is not ready (HTTP %d)", host, code)
		}
		return status.Status().Message
	case errors.As(err, &authority):
		return "the certificate of " + host + " is signed by an unknown authority"
	case errors.As(err, &hostname):
		return "the certificate of " + host + " is for other host names"
	case errors.As(err, &invalid):
		if invalid.Reason == x509.Expired {
			return "the certificate of " + host + " has expired or is not valid yet"
		}
		return "the certificate of " + host + " is not valid"
	case errors.As(err, &resolve):
		return "the host name of " + host + " cannot be resolved"
	case errors.Is(err, context.DeadlineExceeded), errors.As(err, &network) && network.Timeout():
		return host + " does not answer in time"
	case errors.Is(err, syscall.ECONNREFUSED):
		return host + " refuses connections"
	case errors.As(err, &number):
		return host + " cannot be reached: " + number.Error()
	}
	return host + " cannot be reached: " + innermost(err).Error()
}

// innermost is the error at the end of a chain, which carries no addresses.
func innermost(err error) error {
	for {
		next := errors.Unwrap(err)
		if next == nil {
			return err
		}
		err = next
	}
}
