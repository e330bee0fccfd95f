package main

import (
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"log"
	"net"
	"net/http"
	"os/signal"
	"strconv"
	"strings"
	"time"

	"golang.org/x/sync/errgroup"
	"golang.org/x/sys/unix"
)

// An application that was asked to end serves until no request has arrived for
// drainTime: callers have learned then that it goes, which takes long on a busy
// machine. It waits at most drainLimit.
const (
	drainTime  = time.Second
	drainLimit = 10 * time.Second
)

// identity says which pod answers.
type identity struct {
	Cluster   string `json:"cluster"`
	Namespace string `json:"namespace"`
	Workload  string `json:"workload"`
	Pod       string `json:"pod"`
}

// application is the program in a pod: it answers HTTP, gRPC and TCP requests with
// its identity and what it received, misbehaves when it is asked to, and sends
// requests for the user of the demo.
type application struct {
	identity
	faults   faults
	received received
}

// app runs an application until it is asked to end.
func app(args []string) int {
	var a application
	var http, tcp string
	flags := flag.NewFlagSet("app", flag.ExitOnError)
	flags.StringVar(&a.Cluster, "cluster", "", "name of the cluster")
	flags.StringVar(&a.Namespace, "namespace", "", "namespace of the pod")
	flags.StringVar(&a.Workload, "workload", "", "name of the workload")
	flags.StringVar(&a.Pod, "pod", "", "name of the pod")
	flags.StringVar(&http, "http", "", "`ports` for HTTP and gRPC, separated by commas")
	flags.StringVar(&tcp, "tcp", "", "`ports` for TCP, separated by commas")
	_ = flags.Parse(args[1:]) // it exits
	ctx, stop := signal.NotifyContext(context.Background(), unix.SIGTERM, unix.SIGINT)
	defer stop()
	if err := a.run(ctx, ports(http), ports(tcp)); err != nil {
		log.Print(err)
		return 1
	}
	return 0
}

func ports(list string) []string {
	return strings.FieldsFunc(list, func(r rune) bool { return r == ',' })
}

// run serves until ctx ends, and until callers have learned of it.
func (a *application) run(ctx context.Context, httpPorts, tcpPorts []string) error {
	group, ended := errgroup.WithContext(context.Background())
	var servers []*http.Server
	for _, p := range httpPorts {
		server := a.httpServer()
		servers = append(servers, server)
		listener, err := net.Listen("tcp4", ":"+p)
		if err != nil {
			return err
		}
		group.Go(func() error { return server.Serve(listener) })
	}
	var listeners []net.Listener
	for _, p := range tcpPorts {
		listener, err := net.Listen("tcp4", ":"+p)
		if err != nil {
			return err
		}
		listeners = append(listeners, listener)
		group.Go(func() error { return a.serveTCP(listener) })
	}
	// The last one: the application is ready when it answers here.
	control, err := net.Listen("unix", appSocket)
	if err != nil {
		return err
	}
	group.Go(func() error {
		return (&http.Server{Handler: a.control(), ReadHeaderTimeout: time.Minute}).Serve(control)
	})
	select {
	case <-ended.Done():
		return group.Wait()
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

// appSocket is where the application is controlled, in its working directory: only
// the kubelet reaches it.
const appSocket = "app.sock"

// control serves requests of the kubelet.
func (a *application) control() http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("POST /call", call)
	mux.HandleFunc("PUT /faults", a.faults.set)
	mux.HandleFunc("GET /received", a.received.write)
	return mux
}

// answerJSON writes a value as JSON.
func answerJSON(w http.ResponseWriter, value any) {
	w.Header().Set("Content-Type", "application/json")
	if err := json.NewEncoder(w).Encode(value); err != nil {
		// The status is already sent.
		log.Printf("answering: %v", err)
	}
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
