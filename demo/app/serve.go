package app

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"net"
	"net/http"
	"strconv"
	"strings"
	"sync"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/metadata"
	"google.golang.org/protobuf/types/known/emptypb"
	"google.golang.org/protobuf/types/known/wrapperspb"
)

// A request asks the application to misbehave by these headers.
const (
	// headerStatus is the HTTP status to answer with.
	headerStatus = "X-App-Status"
	// headerDelay is a duration to wait before the answer.
	headerDelay = "X-App-Delay"
	// headerReset closes the connection without an answer.
	headerReset = "X-App-Reset"
	// headerFirst limits the misbehaviour to the first attempts of the request
	// that headerRequest names.
	headerFirst   = "X-App-First"
	headerRequest = "X-App-Request"
)

// echo is the answer to an HTTP request: who answers, and what arrived.
type echo struct {
	Identity
	Protocol string              `json:"protocol"`
	Method   string              `json:"method"`
	Host     string              `json:"host"`
	Path     string              `json:"path"`
	Headers  map[string][]string `json:"headers"`
	// Attempt counts the requests with the same headerRequest, from 1.
	Attempt int `json:"attempt,omitempty"`
}

// faults are what `demo break` makes an application do to all requests.
type faults struct {
	mu sync.Mutex
	faultSettings
}

// faultSettings is the content of PUT /faults.
type faultSettings struct {
	// Status is answered instead of 200; 0 means none.
	Status int `json:"status,omitempty"`
	// DelayMs delays each answer, in milliseconds.
	DelayMs int `json:"delayMs,omitempty"`
}

func (f *faults) set(w http.ResponseWriter, r *http.Request) {
	var settings faultSettings
	if err := json.NewDecoder(r.Body).Decode(&settings); err != nil {
		badRequest(w, err)
		return
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	f.faultSettings = settings
}

func (f *faults) now() faultSettings {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.faultSettings
}

// received counts the requests that arrived by authority, and the attempts of
// requests that have a name.
type received struct {
	mu       sync.Mutex
	hosts    map[string]int
	attempts map[string]int
	last     time.Time
	// ending is when quiet was asked for first.
	ending time.Time
}

// keepAttempts bounds the memory for the attempts of named requests.
const keepAttempts = 10_000

func (r *received) count(host, request string) (attempt int) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.hosts == nil || len(r.attempts) > keepAttempts {
		r.hosts, r.attempts = maps.Clone(r.hosts), map[string]int{}
		if r.hosts == nil {
			r.hosts = map[string]int{}
		}
	}
	r.hosts[host]++
	r.last = time.Now()
	if request == "" {
		return 0
	}
	r.attempts[request]++
	return r.attempts[request]
}

// quiet waits until no request has arrived for drainTime since it was asked for first, at most drainLimit.
func (r *received) quiet() {
	for wait := r.untilQuiet(); wait > 0; wait = r.untilQuiet() {
		time.Sleep(wait)
	}
}

// untilQuiet is how long it takes if no further request arrives.
func (r *received) untilQuiet() time.Duration {
	r.mu.Lock()
	defer r.mu.Unlock()
	now := time.Now()
	if r.ending.IsZero() {
		r.ending = now
	}
	last := r.ending
	if r.last.After(last) {
		last = r.last
	}
	return min(last.Add(drainTime).Sub(now), r.ending.Add(drainLimit).Sub(now))
}

// write answers with the number of requests by authority. A mirrored request has
// that of the service that it was sent to.
func (r *received) write(w http.ResponseWriter, _ *http.Request) {
	r.mu.Lock()
	hosts := maps.Clone(r.hosts)
	r.mu.Unlock()
	answerJSON(w, hosts)
}

// httpServer serves HTTP/1.1, HTTP/2 without TLS, and gRPC on the same port.
func (a *application) httpServer() *http.Server {
	protocols := new(http.Protocols)
	protocols.SetHTTP1(true)
	protocols.SetUnencryptedHTTP2(true)
	calls := grpc.NewServer(grpc.UnknownServiceHandler(a.answerGRPC))
	return &http.Server{
		Protocols: protocols, ReadHeaderTimeout: time.Minute,
		Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if r.ProtoMajor == 2 && strings.HasPrefix(r.Header.Get("Content-Type"), "application/grpc") {
				a.answerCall(calls, w, r)
				return
			}
			a.answer(w, r)
		}),
	}
}

// answer answers an HTTP request.
func (a *application) answer(w http.ResponseWriter, r *http.Request) {
	answer, attempt, ok := a.prepare(w, r)
	if !ok {
		return
	}
	_, _ = io.Copy(io.Discard, r.Body)
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(answer)
	_ = json.NewEncoder(w).Encode(echo{ // the caller may be gone
		Identity: a.Identity, Protocol: r.Proto, Method: r.Method, Host: r.Host, Path: r.URL.RequestURI(), Headers: r.Header, Attempt: attempt,
	})
}

// answerCall answers a gRPC request.
func (a *application) answerCall(calls *grpc.Server, w http.ResponseWriter, r *http.Request) {
	answer, _, ok := a.prepare(w, r)
	switch {
	case !ok:
	case answer == http.StatusOK:
		calls.ServeHTTP(w, r)
	default:
		// In the headers, as servers answer that fail at once: proxies do not retry
		// because of a status in the trailers, which calls would send.
		w.Header().Set("Content-Type", "application/grpc")
		w.Header().Set("Grpc-Status", strconv.Itoa(int(codes.Unavailable)))
		w.Header().Set("Grpc-Message", fmt.Sprintf("asked to answer %d", answer))
	}
}

// prepare counts a request, waits or closes the connection if it has to, and returns
// the status to answer with. There is nothing to answer unless ok is true.
func (a *application) prepare(w http.ResponseWriter, r *http.Request) (answer, attempt int, ok bool) {
	attempt = a.received.count(r.Host, r.Header.Get(headerRequest))
	answer, wait, err := a.wanted(r.Header, attempt)
	if err != nil {
		badRequest(w, err)
		return 0, attempt, false
	}
	select {
	case <-time.After(wait):
	case <-r.Context().Done():
		return 0, attempt, false
	}
	if answer == reset {
		panic(http.ErrAbortHandler)
	}
	return answer, attempt, true
}

// reset is not a status: the connection is closed.
const reset = -1

// wanted returns the status and the delay of an answer: as the request asks, else
// as the application is broken.
func (a *application) wanted(header http.Header, attempt int) (answer int, wait time.Duration, err error) {
	broken := a.faults.now()
	answer, wait = http.StatusOK, time.Duration(broken.DelayMs)*time.Millisecond
	if broken.Status != 0 {
		answer = broken.Status
	}
	if first, ok, err := number(header, headerFirst); err != nil || ok && attempt > first {
		return answer, wait, err
	}
	if asked, ok, err := number(header, headerStatus); err != nil {
		return 0, 0, err
	} else if ok {
		answer = asked
	}
	if delay := header.Get(headerDelay); delay != "" {
		if wait, err = time.ParseDuration(delay); err != nil {
			return 0, 0, fmt.Errorf("header %s: %w", headerDelay, err)
		}
	}
	if header.Get(headerReset) != "" {
		answer = reset
	}
	return answer, wait, nil
}

// answerGRPC answers any unary method with the identity of the pod.
func (a *application) answerGRPC(_ any, stream grpc.ServerStream) error {
	header := http.Header{}
	incoming, _ := metadata.FromIncomingContext(stream.Context())
	for name, values := range incoming {
		header[http.CanonicalHeaderKey(name)] = values
	}
	if err := stream.RecvMsg(new(emptypb.Empty)); err != nil {
		return err
	}
	host := strings.Join(incoming.Get(":authority"), "")
	data, err := json.Marshal(echo{Identity: a.Identity, Protocol: "gRPC", Host: host, Headers: header})
	if err != nil {
		return err
	}
	return stream.SendMsg(wrapperspb.String(string(data)))
}

// serveTCP answers each line with the identity of the pod as JSON.
func (a *application) serveTCP(listener net.Listener) error {
	for {
		connection, err := listener.Accept()
		if err != nil {
			return err
		}
		go func() {
			defer func() { _ = connection.Close() }()
			for lines := bufio.NewScanner(connection); lines.Scan(); {
				a.received.count("tcp", "")
				broken := a.faults.now()
				time.Sleep(time.Duration(broken.DelayMs) * time.Millisecond)
				if broken.Status != 0 {
					return
				}
				if err := json.NewEncoder(connection).Encode(echo{Identity: a.Identity, Protocol: "TCP", Path: lines.Text()}); err != nil {
					return
				}
			}
		}()
	}
}
