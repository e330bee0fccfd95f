package agent

import (
	"context"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"k8s.io/client-go/rest"

	"github.com/meshctl/meshctl/engine/mirror"
	"github.com/meshctl/meshctl/engine/relay/relayv1"
)

// slowServer is an API server that answers when it is let, and how many requests arrived.
func slowServer(t *testing.T) (e *exchanger, arrived chan struct{}, let chan string) {
	t.Helper()
	arrived, let = make(chan struct{}, 1000), make(chan string)
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		arrived <- struct{}{}
		select {
		case text := <-let:
			_, _ = io.WriteString(w, text)
		case <-t.Context().Done():
		}
	}))
	t.Cleanup(server.Close)
	e, err := newExchanger(&rest.Config{Host: server.URL}, &guard{link: &mirror.Link{}}, slog.New(slog.DiscardHandler))
	require.NoError(t, err)
	return e, arrived, let
}

// TestAnAnswerBelongsToItsStream: a hub that starts again counts from one, and must not get the answer to what another one asked for.
func TestAnAnswerBelongsToItsStream(t *testing.T) {
	t.Parallel()
	e, arrived, let := slowServer(t)
	e.begin()
	// The context is that of the process: the request goes on after its stream.
	e.receive(context.WithoutCancel(t.Context()), &relayv1.Request{Id: 1, Method: http.MethodGet, Path: "/readyz"})
	<-arrived
	e.mu.Lock()
	delete(e.cancels, 1) // its answer is on the way, so that nothing can be canceled
	e.mu.Unlock()
	e.begin()
	e.receive(t.Context(), &relayv1.Request{Id: 1, Method: http.MethodGet, Path: "/version"})
	<-arrived
	let <- "one"
	let <- "the other"
	e.group.Wait()
	assert.Len(t, e.answers, 1)
	assert.Empty(t, e.cancels)
}

// TestRequestsAreBounded: what a hub asks for beyond that is refused at once.
func TestRequestsAreBounded(t *testing.T) {
	t.Parallel()
	e, _, _ := slowServer(t)
	e.begin()
	for id := range uint64(maxOpen + 1) {
		e.receive(t.Context(), &relayv1.Request{Id: id + 1, Method: http.MethodGet, Path: "/readyz"})
	}
	a, more := e.next()
	require.True(t, more)
	assert.EqualValues(t, maxOpen+1, a.GetId())
	assert.Contains(t, a.GetError(), "have no answer yet")
}
