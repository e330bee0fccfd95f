package hub

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"sync"
	"time"

	"google.golang.org/grpc"

	"github.com/meshctl/meshctl/engine/kube"
	"github.com/meshctl/meshctl/engine/relay/pump"
	"github.com/meshctl/meshctl/engine/relay/relayv1"
)

// maxBody is the largest request, in bytes.
const maxBody = 3 << 20

// exchange sends requests to a cluster through its agent. It is an http.RoundTripper.
type exchange struct {
	cluster string

	mu sync.Mutex
	// now is the stream that there is; nil if there is none.
	now *exchangeStream
	// why there is none.
	why error
	id  uint64
}

// exchangeStream is a stream of Exchange. The lock of the exchange guards its fields.
type exchangeStream struct {
	end    context.CancelCauseFunc
	signal chan struct{}
	// due are requests to be sent, and open those without an answer.
	due  []*relayv1.Request
	open map[uint64]chan<- *relayv1.Answer
}

func newExchange(cluster string) *exchange {
	return &exchange{cluster: cluster, why: errors.New("its agent has not connected yet")}
}

// RoundTrip implements http.RoundTripper. The answer is read whole: no request of the hub lasts.
func (e *exchange) RoundTrip(r *http.Request) (*http.Response, error) {
	var body []byte
	if r.Body != nil {
		defer func() { _ = r.Body.Close() }()
		var err error
		if body, err = io.ReadAll(io.LimitReader(r.Body, maxBody+1)); err != nil {
			return nil, err
		}
		if len(body) > maxBody {
			return nil, fmt.Errorf("the request has more than %d bytes, which is more than passes through an agent", maxBody)
		}
	}
	request := &relayv1.Request{Method: r.Method, Path: r.URL.RequestURI(), ContentType: r.Header.Get("Content-Type"), Body: body, Explained: kube.IsExplained(r.Context())}
	answered, stream, err := e.send(request)
	if err != nil {
		return nil, err
	}
	select {
	case <-r.Context().Done():
		e.cancel(stream, request.GetId())
		return nil, r.Context().Err()
	case answer, open := <-answered:
		switch {
		case !open:
			return nil, e.missing()
		case answer.GetError() != "":
			return nil, fmt.Errorf("the agent of %s got no answer: %s", e.cluster, answer.GetError())
		}
		return response(r, answer), nil
	}
}

// response is an answer as a client of HTTP has it.
func response(r *http.Request, a *relayv1.Answer) *http.Response {
	header := http.Header{}
	if a.GetContentType() != "" {
		header.Set("Content-Type", a.GetContentType())
	}
	if a.GetRetryAfter() != "" {
		header.Set("Retry-After", a.GetRetryAfter())
	}
	for _, warning := range a.GetWarnings() {
		header.Add("Warning", warning)
	}
	code := int(a.GetStatus())
	return &http.Response{
		Status: fmt.Sprintf("%d %s", code, http.StatusText(code)), StatusCode: code, Proto: "HTTP/1.1", ProtoMajor: 1, ProtoMinor: 1,
		Header: header, Body: io.NopCloser(bytes.NewReader(a.GetBody())), ContentLength: int64(len(a.GetBody())), Request: r,
	}
}

// missing is why no request can be sent.
func (e *exchange) missing() error {
	e.mu.Lock()
	defer e.mu.Unlock()
	return fmt.Errorf("the agent of %s has no connection: %w", e.cluster, e.why)
}

// send queues a request. The channel is closed if the stream ends before the answer.
func (e *exchange) send(r *relayv1.Request) (<-chan *relayv1.Answer, *exchangeStream, error) {
	e.mu.Lock()
	now := e.now
	if now == nil {
		e.mu.Unlock()
		return nil, nil, e.missing()
	}
	defer e.mu.Unlock()
	e.id++
	r.Id = e.id
	answered := make(chan *relayv1.Answer, 1)
	now.open[r.Id] = answered
	now.due = append(now.due, r)
	pump.Signal(now.signal)
	return answered, now, nil
}

// cancel forgets a request.
func (e *exchange) cancel(of *exchangeStream, id uint64) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if _, open := of.open[id]; open {
		delete(of.open, id)
		of.due = append(of.due, &relayv1.Request{Id: id, Cancel: true})
		pump.Signal(of.signal)
	}
}

// begin makes a stream the one that is used.
func (e *exchange) begin(end context.CancelCauseFunc) *exchangeStream {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.drop(e.now, errReplaced)
	e.now = &exchangeStream{end: end, signal: make(chan struct{}, 1), open: map[uint64]chan<- *relayv1.Answer{}}
	return e.now
}

// ended says that a stream is of no more use.
func (e *exchange) ended(s *exchangeStream, why error) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.drop(s, why)
}

// end ends the stream that there is.
func (e *exchange) end(why error) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.drop(e.now, why)
}

// drop ends a stream, under the lock.
func (e *exchange) drop(s *exchangeStream, why error) {
	if s == nil {
		return
	}
	s.end(why)
	for id, answered := range s.open {
		close(answered)
		delete(s.open, id)
	}
	if e.now == s {
		e.now, e.why = nil, why
	}
}

func (e *exchange) next(s *exchangeStream) (*relayv1.Request, bool) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if len(s.due) == 0 {
		return nil, false
	}
	first := s.due[0]
	s.due = s.due[1:]
	return first, true
}

// answer takes an answer; one to a request that nobody waits for is dropped.
func (e *exchange) answer(s *exchangeStream, a *relayv1.Answer) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if answered, open := s.open[a.GetId()]; open {
		delete(s.open, a.GetId())
		answered <- a
	}
}

// Exchange implements relayv1.RelayServer.
func (h *Hub) Exchange(in grpc.BidiStreamingServer[relayv1.Answer, relayv1.Request]) error {
	first, err := pump.First(h.options.Times, in.Recv)
	if err != nil {
		return err
	}
	who, err := h.enter(in.Context(), first.GetHello())
	if err != nil {
		return err
	}
	defer who.leave()
	c := who.cluster
	if err := in.Send(&relayv1.Request{Hello: h.hello()}); err != nil {
		return err
	}
	if c.owes {
		return hold(h, who, in.Recv, func(*relayv1.Answer) error { return nil }, pump.Out[*relayv1.Request]{
			Send: in.Send, Beat: func() *relayv1.Request { return &relayv1.Request{Beat: &relayv1.Beat{}} },
		})
	}
	s := c.exchange.begin(who.end)
	meter := &h.book(c.name).exchange
	counted := meter.Begin()
	go pump.Receive(h.options.Times, pump.Receiving(counted, in.Recv), func(a *relayv1.Answer) error { c.exchange.answer(s, a); return nil }, who.end)
	err = pump.Run(who.ctx, pump.Out[*relayv1.Request]{
		Times: h.options.Times, Signal: s.signal, Send: pump.Sending(counted, in.Send),
		Next: func() (*relayv1.Request, bool) { return c.exchange.next(s) },
		Beat: func() *relayv1.Request { return &relayv1.Request{Beat: meter.Beat()} },
	})
	err = who.cause(err)
	counted.End(err)
	h.book(c.name).standsDown.Note(err, time.Now())
	c.exchange.ended(s, errors.New(wordsOf(err)))
	return err
}
