package watch_test

import (
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"k8s.io/client-go/rest"

	"github.com/meshctl/meshctl/demo/waittest"
	"github.com/meshctl/meshctl/engine/snapshot"
	"github.com/meshctl/meshctl/engine/watch"
)

// worthless are answers to a request for Services that say nothing about them.
var worthless = []func(http.ResponseWriter){
	func(w http.ResponseWriter) { http.Error(w, "broken", http.StatusInternalServerError) },
	func(w http.ResponseWriter) {
		w.Header().Set("Content-Type", "application/json")
		w.WriteHeader(http.StatusGone)
		_, _ = io.WriteString(w, `{"kind":"Status","apiVersion":"v1","status":"Failure","reason":"Expired","code":410}`)
	},
	// A stream that ends before the objects that there are, or a list that is cut off.
	func(w http.ResponseWriter) { w.Header().Set("Content-Type", "application/json") },
	func(w http.ResponseWriter) {
		w.Header().Set("Content-Type", "application/json")
		_, _ = io.WriteString(w, `{"kind":"ServiceList","apiVersion":"v1","metadata":{"resourceVersion":"1"},"items":[`)
	},
}

// TestALostWatchIsNotAnEmptyList: the watch of a kind ends, and for a while neither a watch
// nor a list of it succeeds, while the API server is ready.
func TestALostWatchIsNotAnEmptyList(t *testing.T) {
	t.Parallel()
	management := installed(t)
	target, err := url.Parse(management.Host)
	require.NoError(t, err)
	transport, err := rest.TransportFor(management)
	require.NoError(t, err)
	var lost atomic.Bool
	var answered atomic.Int64
	forward := &httputil.ReverseProxy{Rewrite: func(r *httputil.ProxyRequest) { r.SetURL(target) }, Transport: transport, FlushInterval: -1}
	proxy := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if lost.Load() && strings.HasSuffix(r.URL.Path, "/services") {
			worthless[int(answered.Add(1))%len(worthless)](w)
			return
		}
		forward.ServeHTTP(w, r)
	}))
	t.Cleanup(func() {
		proxy.CloseClientConnections()
		proxy.Close()
	})
	w := start(t, management, watch.Options{})
	w.Set("west", "", &rest.Config{Host: proxy.URL}, nil)
	w.is("west", snapshot.Synced)
	name := fmt.Sprintf("-%d", time.Now().UnixNano())
	createService(t, management, "kept"+name)
	w.hasService("west", "kept"+name)

	lost.Store(true)
	proxy.CloseClientConnections()
	waittest.Until(t, "all answers were given twice", func() bool {
		if in := w.Input(); in != nil {
			require.NotNil(t, serviceIn(named(in, "west"), "kept"+name), "after %d answers", answered.Load())
		}
		return answered.Load() >= int64(2*len(worthless))
	})
	lost.Store(false)
	createService(t, management, "again"+name)
	c := w.hasService("west", "again"+name)
	assert.NotNil(t, serviceIn(c, "kept"+name))
}
