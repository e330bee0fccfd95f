package agent

import (
	"errors"
	"fmt"
	"net"
	"net/http"
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/prometheus/promhttp"
)

// DefaultHealthBind is reached only from this machine; a Pod sets an address that the kubelet reaches.
const DefaultHealthBind = "127.0.0.1:9093"

// stuckAfter is when an agent that leads and does nothing is to be restarted.
const stuckAfter = 3 * meshTimeout

// handler serves what everybody may read: no contents of objects.
func handler(m *metrics, leader *atomic.Bool, now func() time.Time, unready func() string) http.Handler {
	started := now()
	answer := func(w http.ResponseWriter, code int, text string) {
		w.Header().Set("Content-Type", "text/plain; charset=utf-8")
		w.Header().Set("X-Content-Type-Options", "nosniff")
		w.WriteHeader(code)
		_, _ = fmt.Fprintln(w, text)
	}
	mux := http.NewServeMux()
	mux.Handle("GET /metrics", promhttp.HandlerFor(m.registry, promhttp.HandlerOpts{}))
	// healthz fails if only a restart can help.
	mux.HandleFunc("GET /healthz", func(w http.ResponseWriter, _ *http.Request) {
		last := started
		if ended := m.ended.Load(); ended != nil {
			last = *ended
		}
		if leader.Load() && now().Sub(last) > stuckAfter {
			answer(w, http.StatusInternalServerError, "no look at the meshes has ended for more than "+stuckAfter.String())
			return
		}
		answer(w, http.StatusOK, "ok")
	})
	mux.HandleFunc("GET /readyz", func(w http.ResponseWriter, _ *http.Request) {
		bad, beside := m.bad.Load(), ""
		if unready != nil {
			beside = unready()
		}
		switch {
		case beside != "":
			answer(w, http.StatusServiceUnavailable, "not ready: "+beside)
		case !leader.Load():
			answer(w, http.StatusOK, "ok: standing by")
		case bad != nil:
			answer(w, http.StatusServiceUnavailable, "not ready: "+*bad)
		case m.ended.Load() == nil:
			answer(w, http.StatusServiceUnavailable, "not ready: the first look at the meshes has not ended")
		default:
			answer(w, http.StatusOK, "ok")
		}
	})
	return mux
}

// listen serves the health endpoints until stop is called.
func listen(o Options, handler http.Handler) (stop func(), err error) {
	if o.HealthBind == "" {
		return func() {}, nil
	}
	listener, err := net.Listen("tcp", o.HealthBind)
	if err != nil {
		return nil, fmt.Errorf("health and metrics cannot be served at %s: %w; choose another address with --health-bind", o.HealthBind, err)
	}
	server := &http.Server{Handler: handler, ReadHeaderTimeout: 5 * time.Second, IdleTimeout: time.Minute}
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		if err := server.Serve(listener); !errors.Is(err, http.ErrServerClosed) {
			o.Log.Error("health and metrics are no longer served", "address", o.HealthBind, "error", err)
		}
	}()
	if o.OnListen != nil {
		o.OnListen(listener.Addr().String())
	}
	return func() { _ = server.Close(); <-ended }, nil
}
