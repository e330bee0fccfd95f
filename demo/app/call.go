package app

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/types/known/emptypb"
	"google.golang.org/protobuf/types/known/wrapperspb"
)

// Call says which requests a workload sends.
type Call struct {
	// URL has the scheme http, grpc or tcp. The path of a gRPC URL is the method.
	URL    string `json:"url"`
	Method string `json:"method,omitempty"`
	// Headers are sent with each request; Host sets the authority.
	Headers http.Header `json:"headers,omitempty"`
	Body    string      `json:"body,omitempty"`
	// Count is the number of requests; 0 means until the context ends.
	Count int `json:"count,omitempty"`
	// Parallel is the number of callers, each with connections of its own.
	Parallel int `json:"parallel,omitempty"`
	// Rate limits the requests per second of all callers; 0 means no limit.
	Rate int `json:"rate,omitempty"`
	// TimeoutMs is the time for one request, in milliseconds; 0 means 30 s.
	TimeoutMs int `json:"timeoutMs,omitempty"`
	// EveryMs is the time between two reports, in milliseconds; 0 means one
	// report at the end.
	EveryMs int `json:"everyMs,omitempty"`
	// Fresh opens a new connection for each request.
	Fresh bool `json:"fresh,omitempty"`
}

// Outcome are the requests with the same end.
type Outcome struct {
	// Identity is the pod that answered; empty if a proxy did, or nobody.
	Identity
	// Status is the HTTP status or gRPC code; 0 for TCP and without an answer.
	Status int `json:"status"`
	// Error is why the application did not answer.
	Error string `json:"error,omitempty"`
	// Micros are the latencies, in microseconds.
	Micros []int64 `json:"micros"`
	// Headers and Body are those of one of the answers.
	Headers http.Header `json:"headers,omitempty"`
	Body    string      `json:"body,omitempty"`
}

// Report are the requests that ended since the last one: a line of JSON.
type Report struct {
	Groups []Outcome `json:"groups"`
}

// outcome is one answer.
type outcome struct {
	identity Identity
	status   int
	err      string
	headers  http.Header
	body     string
}

// groupKey distinguishes outcomes.
type groupKey struct {
	identity Identity
	status   int
	err      string
}

// call sends requests as the application, and reports the outcomes as lines of
// JSON.
func (a *application) call(w http.ResponseWriter, r *http.Request) {
	var request Call
	if err := json.NewDecoder(r.Body).Decode(&request); err != nil {
		badRequest(w, err)
		return
	}
	send, err := newCaller(request, a.Dial)
	if err != nil {
		badRequest(w, err)
		return
	}
	_ = send.reports(r.Context(), func(report Report) error { // the caller may be gone
		if err := json.NewEncoder(w).Encode(report); err != nil {
			return err
		}
		return http.NewResponseController(w).Flush()
	})
}

// Send sends requests until they are done or ctx ends, and passes the outcomes of each
// interval to report. An error of report ends it.
func Send(ctx context.Context, call Call, dial Dial, report func(Report) error) error {
	c, err := newCaller(call, dial)
	if err != nil {
		return err
	}
	return c.reports(ctx, report)
}

func newCaller(request Call, dial Dial) (*caller, error) {
	connect, err := sending{request, dial}.sender()
	if err != nil {
		return nil, err
	}
	return &caller{request: request, connect: connect, groups: map[groupKey]*Outcome{}}, nil
}

// reports sends the requests and reports their outcomes.
func (c *caller) reports(ctx context.Context, report func(Report) error) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	done := make(chan struct{})
	go func() {
		defer close(done)
		c.run(ctx)
	}()
	every := make(<-chan time.Time)
	if c.request.EveryMs > 0 {
		tick := time.NewTicker(time.Duration(c.request.EveryMs) * time.Millisecond)
		defer tick.Stop()
		every = tick.C
	}
	for {
		select {
		case <-every:
			if err := report(c.report()); err != nil {
				return err
			}
		case <-done:
			return report(c.report())
		}
	}
}

// caller sends the requests of one call.
type caller struct {
	request Call
	connect func() sender
	sent    atomic.Int64

	mu     sync.Mutex
	groups map[groupKey]*Outcome
}

// sender sends requests over connections of its own.
type sender struct {
	// send sends one request and returns its outcome.
	send func(ctx context.Context) outcome
	// close closes the connections.
	close func()
}

func (c *caller) run(ctx context.Context) {
	var all sync.WaitGroup
	start := time.Now()
	for range max(1, c.request.Parallel) {
		all.Go(func() {
			sender := c.connect()
			defer sender.close()
			for ctx.Err() == nil {
				n := c.sent.Add(1)
				if c.request.Count > 0 && n > int64(c.request.Count) {
					return
				}
				if c.request.Rate > 0 {
					due := start.Add(time.Duration(n-1) * time.Second / time.Duration(c.request.Rate))
					select {
					case <-time.After(time.Until(due)):
					case <-ctx.Done():
						return
					}
				}
				c.one(ctx, sender)
			}
		})
	}
	all.Wait()
}

func (c *caller) one(ctx context.Context, sender sender) {
	timeout := 30 * time.Second
	if c.request.TimeoutMs > 0 {
		timeout = time.Duration(c.request.TimeoutMs) * time.Millisecond
	}
	limited, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	begin := time.Now()
	o := sender.send(limited)
	taken := time.Since(begin)
	if ctx.Err() != nil {
		return // the caller went away, so this is not an answer
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	key := groupKey{o.identity, o.status, o.err}
	group := c.groups[key]
	if group == nil {
		group = &Outcome{Identity: o.identity, Status: o.status, Error: o.err, Headers: o.headers, Body: o.body}
		c.groups[key] = group
	}
	group.Micros = append(group.Micros, taken.Microseconds())
}

// report returns the outcomes since the last one.
func (c *caller) report() Report {
	c.mu.Lock()
	groups := c.groups
	c.groups = map[groupKey]*Outcome{}
	c.mu.Unlock()
	report := Report{Groups: []Outcome{}}
	for _, g := range groups {
		report.Groups = append(report.Groups, *g)
	}
	return report
}

// sending is a call, and how it connects.
type sending struct {
	Call
	dial Dial
}

// sender returns what makes a sender for each of the parallel callers.
func (r sending) sender() (func() sender, error) {
	target, err := url.Parse(r.URL)
	if err != nil {
		return nil, err
	}
	switch target.Scheme {
	case "http":
		return func() sender { return r.http() }, nil
	case "grpc":
		return func() sender { return r.grpc(target) }, nil
	case "tcp":
		return func() sender { return r.tcp(target) }, nil
	default:
		return nil, fmt.Errorf("URL %q: its scheme is not http, grpc or tcp", r.URL)
	}
}

// http sends requests over HTTP/1.1.
func (r sending) http() sender {
	client := &http.Client{
		Transport:     &http.Transport{DialContext: r.dial.dialer().DialContext, DisableCompression: true, DisableKeepAlives: r.Fresh},
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}
	send := func(ctx context.Context) outcome {
		request, err := http.NewRequestWithContext(ctx, r.Method, r.URL, bytes.NewReader([]byte(r.Body)))
		if err != nil {
			return outcome{err: err.Error()}
		}
		request.Header = r.Headers.Clone()
		if host := r.Headers.Get("Host"); host != "" {
			request.Host = host
		}
		response, err := client.Do(request)
		if err != nil {
			return outcome{err: brief(err)}
		}
		defer func() { _ = response.Body.Close() }()
		body, err := io.ReadAll(io.LimitReader(response.Body, 64<<10))
		if err != nil {
			return outcome{err: brief(err)}
		}
		o := outcome{status: response.StatusCode, headers: response.Header, body: string(body)}
		if json.Unmarshal(body, &o.identity) != nil {
			// A proxy answered: its text says why.
			o.err = strings.TrimSpace(string(body[:min(len(body), 200)]))
		}
		return o
	}
	return sender{send, client.CloseIdleConnections}
}

// grpc calls the method in the path of the URL.
func (r sending) grpc(target *url.URL) sender {
	// passthrough: the dialer resolves the name.
	connection, err := grpc.NewClient("passthrough:///"+target.Host, grpc.WithTransportCredentials(insecure.NewCredentials()),
		grpc.WithContextDialer(func(ctx context.Context, address string) (net.Conn, error) {
			return r.dial.dialer().DialContext(ctx, "tcp4", address)
		}))
	if err != nil {
		return sender{func(context.Context) outcome { return outcome{err: err.Error()} }, func() {}}
	}
	method := target.Path
	if method == "" || method == "/" {
		method = "/demo.Echo/Echo"
	}
	send := func(ctx context.Context) outcome {
		for name, values := range r.Headers {
			for _, v := range values {
				ctx = metadata.AppendToOutgoingContext(ctx, name, v)
			}
		}
		var answer wrapperspb.StringValue
		var header metadata.MD
		err := connection.Invoke(ctx, method, new(emptypb.Empty), &answer, grpc.Header(&header), grpc.WaitForReady(true))
		o := outcome{status: int(status.Code(err)), headers: http.Header(header), body: answer.GetValue()}
		if err != nil {
			o.err, _, _ = strings.Cut(status.Convert(err).Message(), "\n")
		} else if err := json.Unmarshal([]byte(o.body), &o.identity); err != nil {
			o.err = err.Error()
		}
		return o
	}
	return sender{send, func() { _ = connection.Close() }}
}

// tcp sends a line over a new connection, and reads the answer.
func (r sending) tcp(target *url.URL) sender {
	send := func(ctx context.Context) outcome {
		connection, err := r.dial.dialer().DialContext(ctx, "tcp4", target.Host)
		if err != nil {
			return outcome{err: brief(err)}
		}
		defer func() { _ = connection.Close() }()
		deadline, _ := ctx.Deadline()
		if err := connection.SetDeadline(deadline); err != nil {
			return outcome{err: brief(err)}
		}
		if _, err := io.WriteString(connection, "hello\n"); err != nil {
			return outcome{err: brief(err)}
		}
		var answer echo
		if err := json.NewDecoder(connection).Decode(&answer); err != nil {
			return outcome{err: brief(err)}
		}
		return outcome{identity: answer.Identity}
	}
	return sender{send, func() {}}
}

// brief is an error without the addresses of both ends, which differ for each
// connection.
func brief(err error) string {
	if errors.Is(err, context.DeadlineExceeded) {
		return "timeout"
	}
	if code := syscall.Errno(0); errors.As(err, &code) {
		return code.Error()
	}
	if dns := (*net.DNSError)(nil); errors.As(err, &dns) {
		// Whatever the agent, which nobody else helps, answers.
		return "the mesh does not know this host"
	}
	for {
		inner := errors.Unwrap(err)
		if inner == nil {
			return err.Error()
		}
		err = inner
	}
}
