package serve

import (
	"context"
	"errors"
	"log/slog"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/leaderelection"
	"k8s.io/client-go/tools/leaderelection/resourcelock"

	"github.com/meshctl/meshctl/demo/sandboxtest"
)

// arrivals is a network that notes the methods of the requests that reach it.
type arrivals struct{ methods []string }

// RoundTrip implements http.RoundTripper.
func (a *arrivals) RoundTrip(r *http.Request) (*http.Response, error) {
	a.methods = append(a.methods, r.Method)
	return &http.Response{StatusCode: http.StatusOK, Body: http.NoBody, Request: r}, nil
}

func TestAPausedLeaderThatWakesUpWritesNothing(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		network := &arrivals{}
		f := &fence{length: leaseFor(DefaultLeaseDuration).renew}
		client, err := rest.HTTPClientFor(f.guard(&rest.Config{Host: "https://fake", Transport: network}))
		require.NoError(t, err)
		send := func(ctx context.Context, method string) error {
			request, err := http.NewRequestWithContext(ctx, method, "https://fake/", http.NoBody)
			require.NoError(t, err)
			response, err := client.Do(request)
			if err == nil {
				require.NoError(t, response.Body.Close())
			}
			return err
		}
		renew := func() {
			now := time.Now()
			f.renewed.Store(&now)
		}
		renew()
		require.NoError(t, send(t.Context(), http.MethodDelete))

		// The process is paused: no timer of it has fired when it sends what it had decided on.
		time.Sleep(leaseFor(DefaultLeaseDuration).renew)
		network.methods = nil
		for _, method := range []string{http.MethodPost, http.MethodPut, http.MethodPatch, http.MethodDelete} {
			ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
			require.ErrorIs(t, send(ctx, method), context.DeadlineExceeded, method)
			cancel()
		}
		require.NoError(t, send(t.Context(), http.MethodGet), "it may read")
		assert.Equal(t, []string{http.MethodGet}, network.methods)

		// It was not paused for too long: it could renew the Lease.
		sent := make(chan error, 1)
		go func() { sent <- send(t.Context(), http.MethodPatch) }()
		time.Sleep(time.Second)
		assert.Empty(t, sent)
		renew()
		require.NoError(t, <-sent)
		assert.Equal(t, []string{http.MethodGet, http.MethodPatch}, network.methods)
	})
}

func TestTheFenceTrustsNeitherClockAlone(t *testing.T) {
	t.Parallel()
	f := &fence{length: 2 * time.Second}
	now := time.Now()
	assert.False(t, f.open(now), "the Lease is not held")
	f.renewed.Store(&now)
	assert.True(t, f.open(now.Add(time.Second)))
	assert.False(t, f.open(now.Add(2*time.Second)))
	// Without the monotonic reading, as if that clock had stopped while the machine was suspended.
	assert.False(t, f.open(now.Round(0).Add(2*time.Second)))
	config := &rest.Config{}
	assert.Same(t, config, (*fence)(nil).guard(config), "no fence")
}

// fakeLease is a Lease in memory.
type fakeLease struct {
	record resourcelock.LeaderElectionRecord
	err    error
	writes int
}

func (l *fakeLease) Get(context.Context) (*resourcelock.LeaderElectionRecord, []byte, error) {
	return &l.record, nil, l.err
}

func (l *fakeLease) Create(ctx context.Context, r resourcelock.LeaderElectionRecord) error {
	return l.Update(ctx, r)
}

func (l *fakeLease) Update(_ context.Context, r resourcelock.LeaderElectionRecord) error {
	if l.err == nil {
		l.record = r
		l.writes++
	}
	return l.err
}

func (l *fakeLease) RecordEvent(string) {}
func (l *fakeLease) Identity() string   { return "me" }
func (l *fakeLease) Describe() string   { return "lease" }

func TestALeaseOfAnotherReplicaIsNotReleased(t *testing.T) {
	t.Parallel()
	l, lease, _ := newTestLock()
	mine := resourcelock.LeaderElectionRecord{HolderIdentity: "me"}
	require.NoError(t, l.Update(t.Context(), mine))
	lease.record.HolderIdentity = "other"
	// This is what an elector does when it ends, whoever holds the Lease.
	_, _, err := l.Get(t.Context())
	require.NoError(t, err)
	require.ErrorIs(t, l.Update(t.Context(), resourcelock.LeaderElectionRecord{}), errTaken)
	assert.Equal(t, "other", lease.record.HolderIdentity)
	assert.Equal(t, "other", *l.state.other.Load())

	lease.record = mine
	_, _, err = l.Get(t.Context())
	require.NoError(t, err)
	require.NoError(t, l.Update(t.Context(), resourcelock.LeaderElectionRecord{}))
	assert.Empty(t, lease.record.HolderIdentity)
}

func TestAnOutageIsReportedOnce(t *testing.T) {
	t.Parallel()
	l, lease, log := newTestLock()
	lease.err = errors.New("no route")
	for range 10 {
		_, _, err := l.Get(t.Context())
		require.ErrorIs(t, err, lease.err)
	}
	assert.Equal(t, "waiting for the management cluster: https://mgmt cannot be reached: no route", *l.state.away.Load())
	lease.err = nil
	for range 10 {
		require.NoError(t, l.Create(t.Context(), resourcelock.LeaderElectionRecord{HolderIdentity: "me"}))
	}
	assert.Nil(t, l.state.away.Load())
	assert.Equal(t, []string{"WARN", "INFO"}, levels(log.String()))
}

// levels are those of the lines of a log.
func levels(log string) []string {
	var out []string
	for line := range strings.Lines(log) {
		_, rest, _ := strings.Cut(line, "level=")
		level, _, _ := strings.Cut(rest, " ")
		out = append(out, level)
	}
	return out
}

func newTestLock() (*lock, *fakeLease, *sandboxtest.Buffer) {
	lease, log := &fakeLease{}, &sandboxtest.Buffer{}
	return &lock{
		Interface: lease, state: &leadership{}, renewed: func(time.Time) {}, host: "https://mgmt",
		log: slog.New(slog.NewTextHandler(log, nil)),
	}, lease, log
}

func TestAKilledLeaderIsReplacedWithinFiveSeconds(t *testing.T) {
	t.Parallel()
	o, err := Options{Management: &rest.Config{}}.withDefaults()
	require.NoError(t, err)
	jitter := 1 + leaderelection.JitterFactor
	slowest := o.lease.length + 2*time.Duration(float64(o.lease.retry)*jitter)
	assert.LessOrEqual(t, slowest, 4500*time.Millisecond, "what remains is for reading all clusters")
	assert.Less(t, o.lease.renew, o.lease.length, "who loses the Lease stops before another one takes it")
}
