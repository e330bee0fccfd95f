package serve

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"strings"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promhttp"

	"github.com/meshctl/meshctl/engine/snapshot"
)

// health is what the endpoints report.
type health struct {
	metrics prometheus.Gatherer
	leader  *leadership
	// loop returns nil until this process leads.
	loop func() *loop
	// waiting says what the first translation waits for.
	waiting func() string
}

// handler serves the endpoints.
func (h *health) handler() http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("GET /{$}", index)
	mux.Handle("GET /metrics", promhttp.HandlerFor(h.metrics, promhttp.HandlerOpts{}))
	mux.HandleFunc("GET /healthz", h.healthz)
	mux.HandleFunc("GET /readyz", h.readyz)
	mux.HandleFunc("GET /debug/snapshot", h.snapshot)
	return mux
}

func index(w http.ResponseWriter, _ *http.Request) {
	writeText(w, http.StatusOK, "/metrics\n/healthz\n/readyz\n/debug/snapshot\n/debug/snapshot?part=input\n/debug/snapshot?part=output\n/debug/snapshot?part=issues")
}

func writeText(w http.ResponseWriter, code int, text string) {
	w.Header().Set("Content-Type", "text/plain; charset=utf-8")
	w.Header().Set("X-Content-Type-Options", "nosniff")
	w.WriteHeader(code)
	_, _ = fmt.Fprintln(w, text)
}

// healthz fails if only a restart can help.
func (h *health) healthz(w http.ResponseWriter, _ *http.Request) {
	if l := h.loop(); l != nil && l.stuck(time.Now()) {
		writeText(w, http.StatusInternalServerError, "a translation has been running for more than "+stuckAfter.String())
		return
	}
	writeText(w, http.StatusOK, "ok")
}

// readyz succeeds after the first translation, or while another replica leads and
// this one stands by.
func (h *health) readyz(w http.ResponseWriter, _ *http.Request) {
	holder := h.leader.identity()
	broken, frozen, held := h.broken(), h.frozen(), h.held()
	switch {
	case h.leader.leading.Load() && frozen != nil:
		writeText(w, http.StatusServiceUnavailable, "not ready: nothing is changed: "+*frozen)
	case h.leader.leading.Load() && broken != nil && *broken == "":
		writeText(w, http.StatusServiceUnavailable, "not ready: translation fails; the log has the reason")
	case h.leader.leading.Load() && broken != nil:
		writeText(w, http.StatusServiceUnavailable, "not ready: translation fails with these objects, which have no effect: "+*broken)
	case h.leader.leading.Load() && held != "":
		writeText(w, http.StatusServiceUnavailable, "not ready: nothing is deleted in "+held)
	case h.leader.leading.Load() && h.state() != nil:
		writeText(w, http.StatusOK, "ok")
	case h.leader.leading.Load():
		writeText(w, http.StatusServiceUnavailable, "not ready: "+h.waiting())
	case holder != "":
		writeText(w, http.StatusOK, "ok: standing by; the leader is "+holder)
	default:
		writeText(w, http.StatusServiceUnavailable, "not ready: waiting for the Lease")
	}
}

// broken names the objects with which the translation panics; nil for none.
func (h *health) broken() *string {
	if l := h.loop(); l != nil {
		return l.broken.Load()
	}
	return nil
}

// frozen is why nothing is translated; nil if it is.
func (h *health) frozen() *string {
	if l := h.loop(); l != nil {
		return l.frozen.Load()
	}
	return nil
}

// held names the clusters in which nothing is deleted until an administrator says so;
// empty if there are none.
func (h *health) held() string {
	state := h.state()
	if state == nil {
		return ""
	}
	var out []string
	for _, f := range state.Input.Failures {
		if f.Code == snapshot.WithdrawalHeld {
			out = append(out, f.Ref.Name+": "+f.Message)
		}
	}
	return strings.Join(out, "; ")
}

// state is the latest translation; nil before the first.
func (h *health) state() *snapshot.State {
	if l := h.loop(); l != nil {
		return l.state.Load()
	}
	return nil
}

// server serves HTTP until it is closed.
type server struct {
	http     *http.Server
	listener net.Listener
	ended    chan struct{}
}

// serveHTTP starts a server at an address.
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
			log.Error("metrics and health are no longer served", "address", address, "error", err)
		}
	}()
	return s, nil
}

// close stops the server; requests in progress get half a second.
func (s *server) close() {
	ctx, cancel := context.WithTimeout(context.Background(), time.Second/2)
	defer cancel()
	if s.http.Shutdown(ctx) != nil {
		_ = s.http.Close()
	}
	<-s.ended
}
