package agent

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/url"
	"sync"
	"sync/atomic"
	"time"

	"k8s.io/client-go/rest"

	"github.com/meshctl/meshctl/engine/kube"
	"github.com/meshctl/meshctl/engine/relay/pump"
	"github.com/meshctl/meshctl/engine/relay/relayv1"
)

// exchanger carries out the hub's requests to the cluster, with the credential of the agent.
type exchanger struct {
	client *http.Client
	base   *url.URL
	guard  *guard
	signal chan struct{}
	log    *slog.Logger
	// refused counts requests that were not passed on.
	refused atomic.Int64
	// verifier answers what is not asked of the API server.
	verifier verifier
	// group has the requests that are carried out.
	group sync.WaitGroup

	mu sync.Mutex
	// stream counts those that began. What was asked for on another one has no answer: IDs begin anew with each hub.
	stream  int
	answers []*relayv1.Answer
	cancels map[uint64]context.CancelFunc
}

// maxOpen is how many requests are carried out at a time. The hub has fewer.
const maxOpen = 256

func newExchanger(config *rest.Config, g *guard, log *slog.Logger) (*exchanger, error) {
	client, err := rest.HTTPClientFor(kube.Unlimited(config))
	if err != nil {
		return nil, err
	}
	base, _, err := rest.DefaultServerUrlFor(config)
	if err != nil {
		return nil, err
	}
	return &exchanger{client: client, base: base, guard: g, log: log, signal: make(chan struct{}, 1), cancels: map[uint64]context.CancelFunc{}}, nil
}

// begin forgets what was asked for on another stream.
func (e *exchanger) begin() {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.stream++
	e.answers = nil
	for id, cancel := range e.cancels {
		cancel()
		delete(e.cancels, id)
	}
}

// receive begins to carry out a request.
func (e *exchanger) receive(ctx context.Context, r *relayv1.Request) {
	if r.GetId() == 0 {
		return
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	if r.GetCancel() {
		if cancel := e.cancels[r.GetId()]; cancel != nil {
			cancel()
		}
		return
	}
	if len(e.cancels) >= maxOpen {
		e.answers = append(e.answers, &relayv1.Answer{Id: r.GetId(), Error: fmt.Sprintf("%d requests have no answer yet", maxOpen)})
		pump.Signal(e.signal)
		return
	}
	ctx, cancel := context.WithCancel(ctx)
	e.cancels[r.GetId()] = cancel
	stream := e.stream
	e.group.Go(func() {
		defer cancel()
		var a *relayv1.Answer
		if broken := kube.Catch(func() { a = e.carryOut(ctx, r) }); broken != nil {
			e.log.Error("a request of the hub failed; this is a bug in meshctl, please report it", "path", r.GetPath(), "error", broken)
			a = &relayv1.Answer{Error: "the agent failed; its log says how"}
		}
		a.Id = r.GetId()
		e.mu.Lock()
		defer e.mu.Unlock()
		if e.stream == stream {
			delete(e.cancels, r.GetId())
			e.answers = append(e.answers, a)
			pump.Signal(e.signal)
		}
	})
}

// next is the next answer.
func (e *exchanger) next() (*relayv1.Answer, bool) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if len(e.answers) == 0 {
		return nil, false
	}
	first := e.answers[0]
	e.answers = e.answers[1:]
	return first, true
}

// maxAnswer is the largest answer that is passed on, in bytes.
const maxAnswer = 3 << 20

// carryOut asks the API server, if the hub may ask for that.
func (e *exchanger) carryOut(ctx context.Context, r *relayv1.Request) *relayv1.Answer {
	if answer := e.verifier.answer(ctx, r); answer != nil {
		return answer
	}
	if err := e.guard.allow(r, time.Now()); err != nil {
		e.refused.Add(1)
		e.log.Warn("a request of the hub is not passed on", "method", r.GetMethod(), "path", r.GetPath(), "reason", err)
		return refusal(err)
	}
	target, err := e.base.Parse(r.GetPath())
	if err != nil {
		return refusal(err)
	}
	request, err := http.NewRequestWithContext(ctx, r.GetMethod(), target.String(), bytes.NewReader(r.GetBody()))
	if err != nil {
		return refusal(err)
	}
	request.Header.Set("Accept", "application/json")
	if r.GetContentType() != "" {
		request.Header.Set("Content-Type", r.GetContentType())
	}
	response, err := e.client.Do(request)
	if err != nil {
		return &relayv1.Answer{Error: kube.Reason(e.base.String(), err)}
	}
	defer func() { _ = response.Body.Close() }()
	body, err := io.ReadAll(io.LimitReader(response.Body, maxAnswer+1))
	switch {
	case err != nil:
		return &relayv1.Answer{Error: kube.Reason(e.base.String(), err)}
	case len(body) > maxAnswer:
		return &relayv1.Answer{Error: fmt.Sprintf("the answer has more than %d bytes", maxAnswer)}
	}
	return &relayv1.Answer{
		Status: uint32(response.StatusCode), Body: body, ContentType: response.Header.Get("Content-Type"),
		RetryAfter: response.Header.Get("Retry-After"), Warnings: response.Header.Values("Warning"),
	}
}

// refusal is the agent's own answer to what the hub may not ask for.
func refusal(err error) *relayv1.Answer {
	body, _ := json.Marshal(map[string]any{ // plain values
		"kind": "Status", "apiVersion": "v1", "status": "Failure", "reason": "Forbidden", "code": http.StatusForbidden,
		"message": "the agent does not pass this on: " + err.Error(),
	})
	return &relayv1.Answer{Status: http.StatusForbidden, ContentType: "application/json", Body: body}
}
