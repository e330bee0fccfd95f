package serve

import (
	"context"
	"net/http"
	"sync/atomic"
	"time"

	"k8s.io/client-go/rest"
)

// fence lets writes of one term through while it is certain that no other replica holds
// the Lease. A replica that was paused, and wakes up when another one leads, writes
// nothing: each write looks at the clock right before it is sent. What the pause catches
// between this look and the network is refused by API servers if the object has changed,
// because each write names the version that it is based on.
type fence struct {
	// length is how long a renewal is good for.
	length time.Duration
	// renewed is when the last renewal that succeeded was sent; nil if the Lease is not held.
	renewed atomic.Pointer[time.Time]
}

// fencePause is the time between two looks while writes wait.
const fencePause = 50 * time.Millisecond

// open reports whether the last renewal is good. A machine that is suspended may stop one
// of its clocks, so both must say so.
func (f *fence) open(now time.Time) bool {
	renewed := f.renewed.Load()
	return renewed != nil && now.Sub(*renewed) < f.length && now.Round(0).Sub(renewed.Round(0)) < f.length
}

// await waits until the Lease is held for certain. It returns the error of ctx if ctx
// ends first.
func (f *fence) await(ctx context.Context) error {
	for !f.open(time.Now()) {
		if !sleep(ctx, fencePause) {
			return ctx.Err()
		}
	}
	return nil
}

// guard returns a configuration whose writes wait for the fence; the same one if there
// is no fence.
func (f *fence) guard(config *rest.Config) *rest.Config {
	if f == nil || config == nil {
		return config
	}
	config = rest.CopyConfig(config)
	config.Wrap(func(base http.RoundTripper) http.RoundTripper { return &fenced{base, f} })
	return config
}

// fenced is a transport behind a fence.
type fenced struct {
	base  http.RoundTripper
	fence *fence
}

// RoundTrip implements http.RoundTripper.
func (t *fenced) RoundTrip(r *http.Request) (*http.Response, error) {
	if r.Method != http.MethodGet {
		if err := t.fence.await(r.Context()); err != nil {
			if r.Body != nil {
				_ = r.Body.Close()
			}
			return nil, err
		}
	}
	return t.base.RoundTrip(r) // a RoundTripper returns the error of the transport
}

// WrappedRoundTripper lets client-go find the transport, to close idle connections.
func (t *fenced) WrappedRoundTripper() http.RoundTripper { return t.base }
