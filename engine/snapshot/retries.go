package snapshot

import (
	"slices"
	"time"

	networkingv1 "github.com/meshctl/meshctl/engine/api/networking/v1"
)

// Retries are the further tries of requests that failed.
type Retries struct {
	// Attempts is the number of retries after the first try. 0 turns retries off,
	// those that a mesh makes by default included.
	Attempts int32
	// PerTry limits each try; 0 means no limit.
	PerTry time.Duration
	// On are the failures after which requests are retried, whatever their method.
	On []networkingv1.RetryCondition
	// AlsoIdempotent are further failures after which only requests with one of
	// IdempotentMethods are retried.
	AlsoIdempotent []networkingv1.RetryCondition
}

// IdempotentMethods are the methods of which two requests have the same effect as one
// (RFC 9110, section 9.2.2). A proxy must not retry requests with other methods by
// itself if they may have been processed.
func IdempotentMethods() []string {
	return []string{"GET", "HEAD", "OPTIONS", "TRACE", "PUT", "DELETE"}
}

// For returns the retries of requests with one method.
func (r Retries) For(method string) Retries {
	if slices.Contains(IdempotentMethods(), method) {
		r.On = slices.Concat(r.On, r.AlsoIdempotent)
	}
	r.AlsoIdempotent = nil
	return r
}

// Retries returns r for the requests that match: the same for all of them if the
// match names a method.
func (m Match) Retries(r Retries) Retries {
	if m.Request == nil || m.Request.Method == "" {
		return r
	}
	return r.For(m.Request.Method)
}

// AfterProcessing reports whether requests of any method are retried after failures
// that leave open whether they were processed.
func (r Retries) AfterProcessing() bool {
	return slices.ContainsFunc(r.On, func(c networkingv1.RetryCondition) bool {
		switch c {
		case networkingv1.RetryOn5xx, networkingv1.RetryOnGatewayError, networkingv1.RetryOnReset,
			networkingv1.RetryOnDeadlineExceeded, networkingv1.RetryOnInternal:
			return true
		}
		return false
	})
}
