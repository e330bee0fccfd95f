package pki

import (
	"crypto/x509"
	"errors"
	"fmt"
	"strings"
	"time"
)

// Reason is what is wrong, for programs. Its value may be shown.
type Reason string

// The reasons.
const (
	// Missing: something that is needed is not there.
	Missing Reason = "Missing"
	// Unreadable: the text is not what it should be, or exceeds a bound.
	Unreadable Reason = "Unreadable"
	// Unsupported: an algorithm, a size of key or an option that is refused here.
	Unsupported Reason = "Unsupported"
	// NotAllowed: a request asks for what its grant does not have.
	NotAllowed Reason = "NotAllowed"
	// Incomplete: a certificate between this one and its root is missing.
	Incomplete Reason = "Incomplete"
	// Expired: the certificate's life is over. By says since when.
	Expired Reason = "Expired"
	// NotYetValid: the certificate's life has not begun. By says how long until then.
	NotYetValid Reason = "NotYetValid"
	// UnknownRoot: the chain ends in a root that is not trusted. Have is its fingerprint, Want those that are trusted.
	UnknownRoot Reason = "UnknownRoot"
	// WrongTrustDomain: an identity is of another trust domain. Have are the identities, Want the trust domains.
	WrongTrustDomain Reason = "WrongTrustDomain"
	// WrongIdentity: the certificate is someone else's. Have are its names, Want those that would do.
	WrongIdentity Reason = "WrongIdentity"
	// KeyMismatch: the private key is not that of the certificate.
	KeyMismatch Reason = "KeyMismatch"
	// NotCA: a certificate signs others and may not.
	NotCA Reason = "NotCA"
	// WrongUsage: the certificate is not for this purpose.
	WrongUsage Reason = "WrongUsage"
	// PathTooLong: more CAs stand below a CA than it permits.
	PathTooLong Reason = "PathTooLong"
	// NameNotPermitted: a CA's name constraints do not permit a name below it. Have is the name, Want what is permitted.
	NameNotPermitted Reason = "NameNotPermitted"
	// BadSignature: the signature is not that of the certificate above, or of the request's key.
	BadSignature Reason = "BadSignature"
	// Failed: making or verifying failed for a reason that is not listed here; Err has it.
	Failed Reason = "Failed"
)

// Error says what is wrong with an object and what to do next.
type Error struct {
	// Object is a certificate by its subject and the start of its fingerprint, or the key of a Secret.
	Object string
	// Reason is what is wrong.
	Reason Reason
	// Problem is the same as a sentence without its subject, for example "has expired".
	Problem string
	// Next is the next step.
	Next string
	// By is how far a time is off; 0 if the Reason is not about time.
	By time.Duration
	// Have and Want are fingerprints, names or trust domains; see the Reason. They are complete, unlike the text.
	Have, Want []string
	// Err is the cause, if a library reported one.
	Err error
}

// Error is one sentence: object, problem, next step.
func (e *Error) Error() string {
	text := e.Object + " " + e.Problem
	if e.Err != nil {
		text += ": " + e.Err.Error()
	}
	return text + "; " + e.Next
}

// Unwrap returns the cause.
func (e *Error) Unwrap() error { return e.Err }

// ReasonOf is the reason of an error of this package, however wrapped; "" for any other error.
func ReasonOf(err error) Reason {
	var e *Error
	if errors.As(err, &e) {
		return e.Reason
	}
	return ""
}

// Bounds of what is quoted in a text.
const (
	maxShown     = 3   // items of a list
	maxShownText = 120 // bytes of a name
	shownSum     = 16  // hexadecimal digits of a fingerprint
)

// name is how an error calls a certificate. Those of workloads have no subject, only an identity.
func name(cert *x509.Certificate) string {
	subject := cert.Subject.String()
	switch {
	case subject != "":
	case len(cert.URIs) > 0:
		subject = cert.URIs[0].String()
	case len(cert.DNSNames) > 0:
		subject = cert.DNSNames[0]
	}
	return fmt.Sprintf("certificate %s (SHA-256 %s...)", shown(subject), Fingerprint(cert)[:shownSum])
}

// shown quotes a text of somebody else.
func shown(text string) string {
	if len(text) > maxShownText {
		return fmt.Sprintf("%q...", text[:maxShownText])
	}
	return fmt.Sprintf("%q", text)
}

// list quotes the first few of many.
func list(items []string) string {
	if len(items) == 0 {
		return "none"
	}
	quoted := make([]string, 0, maxShown)
	for _, item := range items[:min(len(items), maxShown)] {
		quoted = append(quoted, shown(item))
	}
	text := strings.Join(quoted, ", ")
	if more := len(items) - maxShown; more > 0 {
		text += fmt.Sprintf(" and %d more", more)
	}
	return text
}
