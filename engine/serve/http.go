package serve

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promhttp"

	"github.com/meshctl/meshctl/engine/snapshot"
)

// health is what the endpoints tell of.
type health struct {
	registry *prometheus.Registry
	leader   *leadership
	// loop is nil until this process works.
	loop func() *loop
	// waiting says what the first translation waits for.
	waiting func() string
}

// handler serves the endpoints.
func (h *health) handler() http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("GET /{$}", index)
	mux.Handle("GET /metrics", promhttp.HandlerFor(h.registry, promhttp.HandlerOpts{}))
	mux.HandleFunc("GET /healthz", h.healthz)
	mux.HandleFunc("GET /readyz", h.readyz)
	mux.HandleFunc("GET /debug/snapshot", h.snapshot)
	return mux
}

func index(w http.ResponseWriter, _ *http.Request) {
	answer(w, http.StatusOK, "/metrics\n/healthz\n/readyz\n/debug/snapshot\n/debug/snapshot?part=input\n/debug/snapshot?part=output\n/debug/snapshot?part=issues")
}

func answer(w http.ResponseWriter, code int, text string) {
	w.Header().Set("Content-Type", "text/plain; charset=utf-8")
	w.Header().Set("X-Content-Type-Options", "nosniff")
	w.WriteHeader(code)
	_, _ = fmt.Fprintln(w, text)
}

// healthz says whether a restart would help.
func (h *health) healthz(w http.ResponseWriter, _ *http.Request) {
	if l := h.loop(); l != nil && l.stuck(time.Now()) {
		answer(w, http.StatusInternalServerError, "a translation has not ended for "+stuckAfter.String())
		return
	}
	answer(w, http.StatusOK, "ok")
}

// readyz says whether this process does its work: the first translation was
// handed over, or another replica leads and this one stands by.
func (h *health) readyz(w http.ResponseWriter, _ *http.Request) {
	holder := h.leader.who()
	switch {
	case h.leader.leading.Load() && h.state() != nil:
		answer(w, http.StatusOK, "ok")
	case h.leader.leading.Load():
		answer(w, http.StatusServiceUnavailable, "not ready: "+h.waiting())
	case holder != "":
		answer(w, http.StatusOK, "ok: standing by; the leader is "+holder)
	default:
		answer(w, http.StatusServiceUnavailable, "not ready: waiting for the Lease")
	}
}

// state is the latest translation; nil before the first.
func (h *health) state() *snapshot.State {
	if l := h.loop(); l != nil {
		return l.state.Load()
	}
	return nil
}

// server answers HTTP requests until it is closed.
type server struct {
	http     *http.Server
	listener net.Listener
	ended    chan struct{}
}

// serveHTTP begins to answer at an address.
func serveHTTP(address string, handler http.Handler, log *slog.Logger) (*server, error) {
	listener, err := net.Listen("tcp", address)
	if err != nil {
		return nil, fmt.Errorf("metrics and health cannot be served at %s: %w; choose another address with --metrics-bind", address, err)
	}
	s := &server{
		http:     &http.Server{Handler: handler, ReadHeaderTimeout: 5 * time.Second, IdleTimeout: time.Minute},
		listener: listener, ended: make(chan struct{}),
	}
	go func() {
		defer close(s.ended)
		if err := s.http.Serve(listener); !errors.Is(err, http.ErrServerClosed) {
			log.Error("metrics and health are not served any more", "address", address, "error", err)
		}
	}()
	return s, nil
}

// close ends the server; requests under way get a moment.
func (s *server) close() {
	ctx, cancel := context.WithTimeout(context.Background(), time.Second/2)
	defer cancel()
	if s.http.Shutdown(ctx) != nil {
		_ = s.http.Close()
	}
	<-s.ended
}
