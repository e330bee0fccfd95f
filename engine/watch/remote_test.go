package watch

import (
	"context"
	"errors"
	"io"
	"log/slog"
	"maps"
	"net/http"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/meshctl/meshctl/engine/api/scheme"
	"github.com/meshctl/meshctl/engine/relay"
	"github.com/meshctl/meshctl/engine/snapshot"
)

// roundTripper is a transport.
type roundTripper func(*http.Request) (*http.Response, error)

func (f roundTripper) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }

// TestARemoteHasAllThatIsReported: a kind that an agent reports and that has no list here, or the other way round, would be lost.
func TestARemoteHasAllThatIsReported(t *testing.T) {
	t.Parallel()
	r, err := newRemote(&snapshot.Cluster{Name: "west"}, sessionSettings{scheme: scheme.New(), plane: snapshot.Plane{Namespace: "gloo-mesh"}},
		roundTripper(func(*http.Request) (*http.Response, error) { return nil, errors.New("nobody answers") }), slog.New(slog.DiscardHandler), func() {})
	require.NoError(t, err)
	var reported []snapshot.Kind
	for _, name := range relay.Reported() {
		if _, written := relay.WrittenNamed(name); written { // these are in the mirror
			continue
		}
		kind, known := relay.KindNamed(name)
		require.True(t, known, name)
		reported = append(reported, kind)
	}
	assert.ElementsMatch(t, reported, slices.Collect(maps.Keys(r.lists)))
}

// TestWhyAnAgentIsAwayIsSaidUntilItIsBack: probes fail while there is no agent, and the answer to one from before may come late. Neither
// hides why the agent is away, nor says that the cluster can be written to.
func TestWhyAnAgentIsAwayIsSaidUntilItIsBack(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var answers atomic.Bool
		var probes atomic.Int64
		transport := roundTripper(func(*http.Request) (*http.Response, error) {
			probes.Add(1)
			if answers.Load() {
				return &http.Response{StatusCode: http.StatusOK, Body: io.NopCloser(strings.NewReader("ok"))}, nil
			}
			return nil, errors.New("the agent of west has no connection")
		})
		r, err := newRemote(&snapshot.Cluster{Name: "west"}, sessionSettings{
			scheme: scheme.New(), plane: snapshot.Plane{Namespace: "gloo-mesh"}, probeInterval: 10 * time.Second, probeTimeout: time.Second,
		}, transport, slog.New(slog.DiscardHandler), func() {})
		require.NoError(t, err)
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		go r.run(ctx)
		after := func(d time.Duration) error {
			before := probes.Load()
			time.Sleep(d)
			synctest.Wait()
			require.Greater(t, probes.Load(), before+1)
			return r.link.State().Err
		}
		require.EqualError(t, after(time.Minute), noAgent)

		r.link.Use(r.conn) // its agent has come, and everything was read
		r.Begin(1).Lost("its agent has no connection: it broke")
		assert.EqualError(t, r.link.State().Err, "its agent has no connection: it broke")
		assert.EqualError(t, after(time.Minute), "its agent has no connection: it broke")
		answers.Store(true)
		assert.EqualError(t, after(time.Minute), "its agent has no connection: it broke")
	})
}
