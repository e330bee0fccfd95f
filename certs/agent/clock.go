package agent

import (
	"net/http"
	"sync/atomic"
	"time"

	"k8s.io/client-go/rest"
)

// clock compares the agent's clock with that of the API server, by the Date header of its answers.
type clock struct {
	now func() time.Time
	// ahead is by how much the agent's clock is ahead.
	ahead atomic.Int64
}

// skew is by how much the agent's clock is ahead; 0 if the clocks are about the same.
func (c *clock) skew() time.Duration {
	skew := time.Duration(c.ahead.Load())
	if skew.Abs() <= skewShown {
		return 0
	}
	return skew
}

// wrap returns a configuration whose answers are looked at.
func (c *clock) wrap(config *rest.Config) *rest.Config {
	config = rest.CopyConfig(config)
	config.Wrap(func(base http.RoundTripper) http.RoundTripper { return &dated{base, c} })
	return config
}

type dated struct {
	base  http.RoundTripper
	clock *clock
}

// RoundTrip implements http.RoundTripper. The date is of some time between request and answer; what took long says little.
func (d *dated) RoundTrip(r *http.Request) (*http.Response, error) {
	sent := d.clock.now()
	response, err := d.base.RoundTrip(r)
	if err != nil {
		return response, err
	}
	received := d.clock.now()
	date, parseErr := http.ParseTime(response.Header.Get("Date"))
	if parseErr == nil && received.Sub(sent).Abs() < skewShown {
		d.clock.ahead.Store(int64(received.Sub(date)))
	}
	return response, nil
}

// WrappedRoundTripper lets client-go find the transport, to close idle connections.
func (d *dated) WrappedRoundTripper() http.RoundTripper { return d.base }
