package proxies

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
)

// Call says which requests a workload sends.
type Call struct {
	// URL has the scheme http, grpc or tcp.
	URL     string      `json:"url"`
	Method  string      `json:"method,omitempty"`
	Headers http.Header `json:"headers,omitempty"`
	Body    string      `json:"body,omitempty"`
	// Count is the number of requests; 0 means until the context ends.
	Count int `json:"count,omitempty"`
	// Parallel is the number of callers, each with its own connections.
	Parallel int `json:"parallel,omitempty"`
	// Rate limits the requests per second; 0 means no limit.
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

// Send sends requests as a pod, and passes the outcomes of each interval to report.
// When ctx ends, it stops without an error.
func (p *Plane) Send(ctx context.Context, from Pod, call Call, report func([]Outcome)) error {
	response, err := p.send(ctx, http.MethodPost, "pods/"+from.UID+"/app/call", call)
	if err != nil {
		if ctx.Err() != nil {
			return nil
		}
		return err
	}
	defer func() { _ = response.Body.Close() }()
	lines, sent := json.NewDecoder(response.Body), 0
	for {
		var line struct {
			Groups []Outcome `json:"groups"`
		}
		err := lines.Decode(&line)
		switch {
		case ctx.Err() != nil || errors.Is(err, io.EOF) && call.Count > 0 && sent == call.Count:
			return nil
		case err != nil:
			return fmt.Errorf("proxies: pod %s ended while it sent requests: %w", from.Pod, err)
		}
		for _, o := range line.Groups {
			sent += len(o.Micros)
		}
		report(line.Groups)
	}
}
