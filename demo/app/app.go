// Package app is the application in the pods of a demo: it answers requests with who it
// is and what it received, misbehaves when it is asked to, and sends requests for the
// user of the demo. It stands in for the services of bookinfo.
//
//	app.go    running it, and its control interface
//	serve.go  answering requests
//	call.go   sending requests, and their outcomes
//	dial.go   connecting as the application of a local pod
package app

import (
	"context"
	"encoding/json"
	"fmt"
	"net"
	"net/http"
	"strconv"
	"time"

	"golang.org/x/sync/errgroup"
)

// An application that was asked to end serves until no request has arrived for
// drainTime: callers have learned then that it goes, which takes long on a busy
// machine. It waits at most drainLimit.
const (
	drainTime  = time.Second
	drainLimit = 10 * time.Second
)

// Identity says which pod it is.
type Identity struct {
	Cluster   string `json:"cluster"`
	Namespace string `json:"namespace"`
	Workload  string `json:"workload"`
	Pod       string `json:"pod"`
}

// Options of an application.
type Options struct {
	Identity
	// HTTP are the ports for HTTP and gRPC, TCP those for TCP.
	HTTP, TCP []int
	// Control is the path of the socket where the application is controlled; empty for
	// none.
	Control string
	// Dial says how it sends requests.
	Dial Dial
}

// application is one that runs.
type application struct {
	Options
	faults   faults
	received received
}

// Run runs an application until ctx ends, and until callers have learned of it.
func Run(ctx context.Context, o Options) error {
	return (&application{Options: o}).run(ctx)
}

func (a *application) run(ctx context.Context) error {
	group, ended := errgroup.WithContext(context.Background())
	var servers []*http.Server
	for _, p := range a.HTTP {
		server := a.httpServer()
		servers = append(servers, server)
		listener, err := listen(p)
		if err != nil {
			return err
		}
		group.Go(func() error { return server.Serve(listener) })
	}
	var listeners []net.Listener
	for _, p := range a.TCP {
		listener, err := listen(p)
		if err != nil {
			return err
		}
		listeners = append(listeners, listener)
		group.Go(func() error { return a.serveTCP(listener) })
	}
	if a.Control != "" {
		// The last one: the application is ready when it answers here.
		control, err := net.Listen("unix", a.Control)
		if err != nil {
			return fmt.Errorf("application: %w", err)
		}
		group.Go(func() error {
			return (&http.Server{Handler: a.control(), ReadHeaderTimeout: time.Minute}).Serve(control)
		})
	}
	select {
	case <-ended.Done():
		return fmt.Errorf("application: %w", group.Wait())
	case <-ctx.Done():
	}
	a.received.quiet()
	for _, l := range listeners {
		_ = l.Close()
	}
	drained, cancel := context.WithTimeout(context.Background(), drainTime)
	defer cancel()
	for _, s := range servers {
		_ = s.Shutdown(drained)
	}
	return nil
}

func listen(port int) (net.Listener, error) {
	listener, err := net.Listen("tcp4", ":"+strconv.Itoa(port))
	if err != nil {
		return nil, fmt.Errorf("application: %w", err)
	}
	return listener, nil
}

// control serves requests of who started the application.
func (a *application) control() http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("POST /call", a.call)
	mux.HandleFunc("PUT /faults", a.faults.set)
	mux.HandleFunc("GET /received", a.received.write)
	mux.HandleFunc("POST /quiet", func(http.ResponseWriter, *http.Request) { a.received.quiet() })
	return mux
}

// answerJSON writes a value as JSON.
func answerJSON(w http.ResponseWriter, value any) {
	w.Header().Set("Content-Type", "application/json")
	_ = json.NewEncoder(w).Encode(value) // the status is already sent
}

// badRequest answers a request that cannot be understood.
func badRequest(w http.ResponseWriter, err error) {
	http.Error(w, err.Error(), http.StatusBadRequest)
}

// number parses an optional header; ok is false if it is absent.
func number(header http.Header, name string) (value int, ok bool, err error) {
	text := header.Get(name)
	if text == "" {
		return 0, false, nil
	}
	value, err = strconv.Atoi(text)
	if err != nil {
		return 0, false, fmt.Errorf("header %s: %w", name, err)
	}
	return value, true, nil
}
