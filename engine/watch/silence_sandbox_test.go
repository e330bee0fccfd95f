package watch_test

import (
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"k8s.io/client-go/rest"

	"github.com/meshctl/meshctl/engine/snapshot"
	"github.com/meshctl/meshctl/engine/watch"
)

// swallower is a proxy in front of an API server that answers everything, but may lose
// what watches deliver. Then it may also keep all other answers but those to probes.
type swallower struct {
	*httptest.Server
	swallows, hangs atomic.Bool
}

func newSwallower(t *testing.T, config *rest.Config) *swallower {
	t.Helper()
	target, err := url.Parse(config.Host)
	require.NoError(t, err)
	transport, err := rest.TransportFor(config)
	require.NoError(t, err)
	s := &swallower{}
	proxy := &httputil.ReverseProxy{
		Rewrite:       func(r *httputil.ProxyRequest) { r.SetURL(target) },
		Transport:     transport,
		FlushInterval: -1,
		ModifyResponse: func(r *http.Response) error {
			if r.Request.URL.Query().Get("watch") != "" {
				r.Body = &swallowedBody{ReadCloser: r.Body, swallows: &s.swallows}
			}
			return nil
		},
	}
	s.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if s.hangs.Load() && r.URL.Path != "/readyz" && r.URL.Query().Get("watch") == "" {
			_, _ = io.Copy(io.Discard, r.Body) // a server notices only after the body that its client is gone
			<-r.Context().Done()
			return
		}
		proxy.ServeHTTP(w, r)
	}))
	t.Cleanup(func() {
		s.CloseClientConnections()
		s.Close()
	})
	return s
}

// swallowedBody delivers nothing more once it has swallowed something: the rest would
// make no sense.
type swallowedBody struct {
	io.ReadCloser
	swallows *atomic.Bool
	lost     bool
}

func (b *swallowedBody) Read(p []byte) (int, error) {
	for {
		n, err := b.ReadCloser.Read(p)
		b.lost = b.lost || b.swallows.Load()
		if !b.lost || err != nil {
			return n, err
		}
	}
}

func TestAProxyThatSwallowsEventsIsNoticed(t *testing.T) {
	t.Parallel()
	management := installed(t)
	proxy := newSwallower(t, management)
	// The pauses between two lists grow to 18 s in a test as short as this.
	const silence = 20 * time.Second
	w := start(t, management, watch.Options{Silence: silence})
	w.Set("west", "", &rest.Config{Host: proxy.URL}, nil)
	w.is("west", snapshot.Synced)
	name := fmt.Sprintf("-%d", time.Now().UnixNano())
	createService(t, management, "heard"+name)
	w.hasService("west", "heard"+name)

	t.Log("what a watch does not deliver is listed")
	proxy.swallows.Store(true)
	began := time.Now()
	createService(t, management, "swallowed"+name)
	c := w.hasService("west", "swallowed"+name)
	t.Logf("seen after %s", time.Since(began))
	assert.Equal(t, snapshot.Synced, c.Sync)
	assert.Contains(t, w.log.String(), "a watch delivered nothing")
	assert.Positive(t, freshness(t, w, "west").Silences)

	t.Log("if lists are not answered either, the cluster is frozen")
	proxy.hangs.Store(true)
	proxy.CloseClientConnections()
	began = time.Now()
	frozen := w.is("west", snapshot.Stale)
	t.Logf("frozen after %s: %s", time.Since(began), frozen.Reason)
	assert.Contains(t, frozen.Reason, "answers, but has sent nothing about its ")
	assert.Contains(t, frozen.Reason, "for more than 40s, neither events nor a list")
	assert.NotNil(t, serviceIn(frozen, "swallowed"+name), "frozen, not empty")
	assert.Greater(t, freshness(t, w, "west").Age, 2*silence)

	t.Log("it thaws when both are delivered again")
	proxy.swallows.Store(false)
	proxy.hangs.Store(false)
	proxy.CloseClientConnections()
	w.is("west", snapshot.Synced)
	createService(t, management, "again"+name)
	w.hasService("west", "again"+name)
	assert.Less(t, freshness(t, w, "west").Age, 2*silence)
	assert.Less(t, freshness(t, w, "").Age, 2*silence, "the management cluster")
}

func freshness(t *testing.T, w *watched, name string) watch.Freshness {
	t.Helper()
	for _, f := range w.Freshness() {
		if f.Cluster == name {
			return f
		}
	}
	require.FailNow(t, "its freshness is not known", name)
	return watch.Freshness{}
}
