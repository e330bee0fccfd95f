package kube

import (
	"context"
	"crypto/x509"
	"errors"
	"fmt"
	"net"
	"net/http"
	"syscall"

	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/meshctl/meshctl/engine/snapshot"
)

// NotUsed is an error of a client that does not use a server although it answers. Its text
// is a sentence that names the server and the next step.
type NotUsed interface {
	error
	NotUsed()
}

// Caused is an error that knows its Cause.
type Caused interface {
	error
	Cause() snapshot.Code
}

// Cause is why a server cannot be used, as a code: what Reason says for people. Empty if there is none for it.
func Cause(err error) snapshot.Code {
	var (
		caused    Caused
		status    apierrors.APIStatus
		authority x509.UnknownAuthorityError
		hostname  x509.HostnameError
		invalid   x509.CertificateInvalidError
		resolve   *net.DNSError
	)
	switch {
	case errors.As(err, &caused):
		return caused.Cause()
	case errors.As(err, &status):
		switch code := status.Status().Code; {
		case code == http.StatusUnauthorized:
			return snapshot.CredentialRefused
		case code == http.StatusForbidden:
			return snapshot.PermissionsMissing
		case code < http.StatusInternalServerError && code != http.StatusTooManyRequests:
			return "" // it answers, and says why
		}
	case errors.As(err, &authority), errors.As(err, &hostname), errors.As(err, &invalid):
		return snapshot.CertificateUntrusted
	case errors.As(err, &resolve):
		return snapshot.NameUnresolved
	}
	return snapshot.ServerUnanswered
}

// Reason says in one sentence why a server cannot be used; server names it.
// The sentence has nothing that differs between attempts, such as local ports.
func Reason(server string, err error) string {
	var (
		status    apierrors.APIStatus
		authority x509.UnknownAuthorityError
		hostname  x509.HostnameError
		invalid   x509.CertificateInvalidError
		resolve   *net.DNSError
		number    syscall.Errno
		notUsed   NotUsed
	)
	if text := pluginReason(server, err); text != "" {
		return text
	}
	switch {
	case errors.As(err, &notUsed):
		return notUsed.Error()
	case errors.As(err, &status):
		switch code := status.Status().Code; {
		case code == http.StatusUnauthorized && expiry(err) != "":
			return rejects(server, expiry(err))
		case code == http.StatusUnauthorized:
			return server + " rejects the credential (401 Unauthorized)"
		case code >= http.StatusInternalServerError:
			return fmt.Sprintf("%s is not ready (HTTP %d)", server, code)
		}
		return status.Status().Message
	case errors.As(err, &authority):
		return "the certificate of " + server + " is signed by an unknown authority"
	case errors.As(err, &hostname):
		return "the certificate of " + server + " is for other host names"
	case errors.As(err, &invalid):
		if invalid.Reason == x509.Expired {
			return "the certificate of " + server + " has expired or is not valid yet"
		}
		return "the certificate of " + server + " is not valid"
	case errors.As(err, &resolve):
		return "the host name of " + server + " cannot be resolved"
	case errors.Is(err, context.DeadlineExceeded), timedOut(err):
		return server + " does not answer in time"
	case errors.Is(err, syscall.ECONNREFUSED):
		return server + " refuses connections"
	case errors.As(err, &number):
		return server + " cannot be reached: " + number.Error()
	}
	return server + " cannot be reached: " + innermost(err).Error()
}

// NextStep is what who asked with a kubeconfig can do about an error, as a sentence. Empty where the Reason has it.
func NextStep(err error) string {
	if IsExpired(err) {
		return ""
	}
	switch Cause(err) {
	case snapshot.ServerUnanswered, snapshot.NameUnresolved, snapshot.CertificateUntrusted:
		return "check the context, the network and that the server runs"
	case snapshot.CredentialRefused:
		return "log in again, or use another context"
	}
	return "check the context and your permissions there"
}

// WithNextStep is an error with its NextStep.
func WithNextStep(err error) error {
	if step := NextStep(err); step != "" {
		return fmt.Errorf("%w; %s", err, step)
	}
	return err
}

// Answered reports that an error is the answer of an API server to what it was asked; false if it does not answer, is not ready,
// or does not accept the credential.
func Answered(err error) bool {
	var status apierrors.APIStatus
	return errors.As(err, &status) && !apierrors.IsUnauthorized(err) && !apierrors.IsServiceUnavailable(err) && !apierrors.IsTooManyRequests(err)
}

// Message is the message of an API server about one request, or why there was none:
// the same each time the request fails in the same way.
func Message(err error) string {
	var status apierrors.APIStatus
	if errors.As(err, &status) && status.Status().Message != "" && !IsExpired(err) {
		return status.Status().Message
	}
	return Reason("the API server", err)
}

// timedOut reports whether any error of a chain is about time: a url.Error around one that is wrapped does not know.
func timedOut(err error) bool {
	for ; err != nil; err = errors.Unwrap(err) {
		if network, ok := err.(net.Error); ok && network.Timeout() { //nolint:errorlint // each of the chain is looked at
			return true
		}
	}
	return false
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
