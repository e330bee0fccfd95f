package serve

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"net"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promhttp"

	"github.com/meshctl/meshctl/engine/explain"
	"github.com/meshctl/meshctl/engine/snapshot"
)

// health is what the endpoints report.
type health struct {
	// metrics has other parts in each term.
	metrics func() prometheus.Gatherer
	leader  *leadership
	// loop returns nil while this process does not lead.
	loop func() *loop
	// waiting says what the first translation waits for.
	waiting func() string
	// unread says why the management cluster cannot be read; empty if it can.
	unread func() string
	// pages and guarded are those of the Options.
	pages, guarded map[string]http.Handler
}

// handler serves the endpoints that anyone may read: they have no contents of
// objects.
func (h *health) handler() http.Handler {
	mux := http.NewServeMux()
	paths := append([]string{"/metrics", "/healthz", "/readyz"}, slices.Sorted(maps.Keys(h.pages))...)
	mux.HandleFunc("GET /{$}", func(w http.ResponseWriter, _ *http.Request) { writeText(w, http.StatusOK, strings.Join(paths, "\n")) })
	for path, page := range h.pages {
		mux.Handle("GET "+path, page)
	}
	mux.HandleFunc("GET /metrics", func(w http.ResponseWriter, r *http.Request) {
		promhttp.HandlerFor(h.metrics(), promhttp.HandlerOpts{}).ServeHTTP(w, r)
	})
	mux.HandleFunc("GET /healthz", h.healthz)
	mux.HandleFunc("GET /readyz", h.readyz)
	return mux
}

func writeText(w http.ResponseWriter, code int, text string) {
	w.Header().Set("Content-Type", "text/plain; charset=utf-8")
	w.Header().Set("X-Content-Type-Options", "nosniff")
	w.WriteHeader(code)
	_, _ = fmt.Fprintln(w, text)
}

// healthz fails if only a restart can help. What is wrong in the fleet is counted, and is no reason to restart.
func (h *health) healthz(w http.ResponseWriter, _ *http.Request) {
	if l := h.loop(); l != nil && l.stuck(time.Now()) {
		writeText(w, http.StatusInternalServerError, "a translation has been running for more than "+stuckAfter.String())
		return
	}
	text := "ok"
	if state := h.state(); state != nil {
		if tally := explain.Count(state.Output.Issues); tally.Wrong() > 0 {
			tally.Infos = 0
			text += "; " + tally.String() + " (meshctl describe problems)"
		}
	}
	writeText(w, http.StatusOK, text)
}

// readyz succeeds after the first translation, or while another replica leads and
// this one stands by; in both cases only while the management cluster answers.
func (h *health) readyz(w http.ResponseWriter, _ *http.Request) {
	leading, other, away := h.leader.leading.Load(), h.leader.other.Load(), h.leader.away.Load()
	reason := ""
	if leading {
		reason = h.obstacle()
	}
	switch {
	case away != nil:
		writeText(w, http.StatusServiceUnavailable, "not ready: "+*away)
	case reason != "":
		writeText(w, http.StatusServiceUnavailable, "not ready: "+reason)
	case leading:
		writeText(w, http.StatusOK, "ok")
	case other != nil:
		writeText(w, http.StatusOK, "ok: standing by; the leader is "+*other)
	default:
		writeText(w, http.StatusServiceUnavailable, "not ready: waiting for the Lease")
	}
}

// obstacle is why a leader is not ready; empty if it is.
func (h *health) obstacle() string {
	l := h.loop()
	if l == nil {
		return h.waiting()
	}
	if frozen := l.frozen.Load(); frozen != nil {
		return "nothing is changed: " + *frozen
	}
	switch broken := l.broken.Load(); {
	case broken == nil:
	case *broken == "":
		return "translation fails; the log has the reason"
	default:
		return "translation fails with these objects, which have no effect: " + *broken
	}
	state := l.state.Load()
	if state == nil {
		return h.waiting()
	}
	if held := heldIn(state); held != "" {
		return "nothing is deleted in " + held
	}
	return h.unread()
}

// heldIn names the clusters in which nothing is deleted until an administrator says so;
// empty if there are none.
func heldIn(state *snapshot.State) string {
	var out []string
	for _, f := range state.Input.Failures {
		if f.Code == snapshot.WithdrawalHeld {
			out = append(out, f.Ref.Name+": "+f.Reason.String())
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

// endpoint is what is served at one address.
type endpoint struct {
	// name is what is served, as a plural; flag chooses the address.
	name, flag string
	// address is host:port; nothing is served if it is empty.
	address string
	handler http.Handler
}

// serve starts a server; nil if there is no address.
func (e endpoint) serve(log *slog.Logger) (*server, error) {
	if e.address == "" {
		return nil, nil
	}
	listener, err := net.Listen("tcp", e.address)
	if err != nil {
		return nil, fmt.Errorf("%s cannot be served at %s: %w; choose another address with %s", e.name, e.address, err, e.flag)
	}
	s := &server{
		http:     &http.Server{Handler: e.handler, ReadHeaderTimeout: 5 * time.Second, IdleTimeout: time.Minute},
		listener: listener, ended: make(chan struct{}),
	}
	go func() {
		defer close(s.ended)
		if err := s.http.Serve(listener); !errors.Is(err, http.ErrServerClosed) {
			log.Error(e.name+" are no longer served", "address", e.address, "error", err)
		}
	}()
	log.Info("serving "+e.name, "address", "http://"+s.addr().String())
	return s, nil
}

// addr is the address of a server, or nil.
func (s *server) addr() net.Addr {
	if s == nil {
		return nil
	}
	return s.listener.Addr()
}

// close stops the server, if any; requests in progress get half a second.
func (s *server) close() {
	if s == nil {
		return
	}
	ctx, cancel := context.WithTimeout(context.Background(), time.Second/2)
	defer cancel()
	if s.http.Shutdown(ctx) != nil {
		_ = s.http.Close()
	}
	<-s.ended
}

// listen serves all endpoints until stop is called.
func (h *health) listen(ctx context.Context, o Options) (stop func(), err error) {
	g, err := newGuard(o.Management)
	if err != nil {
		return nil, err
	}
	metrics, err := endpoint{"metrics and health", "--metrics-bind", o.MetricsBind, h.handler()}.serve(o.Log)
	if err != nil {
		return nil, err
	}
	debug, err := endpoint{"debug endpoints", "--debug-bind", o.DebugBind, g.protect(h.debugHandler())}.serve(o.Log)
	if err != nil {
		metrics.close()
		return nil, err
	}
	if debug != nil {
		g.report(ctx, o.Log)
	}
	if tcp, ok := debug.addr().(*net.TCPAddr); ok && !tcp.IP.IsLoopback() {
		o.Log.Warn("debug endpoints are served beyond this machine: tokens cross the network unencrypted", "address", tcp.String())
	}
	if o.OnListen != nil {
		o.OnListen(metrics.addr(), debug.addr())
	}
	return func() { metrics.close(); debug.close() }, nil
}
