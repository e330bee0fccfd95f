package hub

import (
	"io"
	"net/http"
	"testing"

	"github.com/stretchr/testify/require"
	"google.golang.org/protobuf/proto"

	"github.com/meshctl/meshctl/engine/relay/relayv1"
)

// FuzzAnswer: no frame of an agent on Exchange, in whatever order, is more than an answer to the request of its ID.
func FuzzAnswer(f *testing.F) {
	for _, a := range []*relayv1.Answer{
		{Id: 1, Status: 200, ContentType: "application/json", Body: []byte("{}"), Warnings: []string{"299 - \"x\""}},
		{Id: 1, Error: "x"}, {Id: 2, Status: 1 << 31}, {Hello: &relayv1.Hello{}}, {},
	} {
		raw, err := proto.Marshal(a)
		require.NoError(f, err)
		f.Add(raw, raw)
	}
	f.Fuzz(func(t *testing.T, first, second []byte) {
		e := newExchange("west")
		s := e.begin(func(error) {})
		answered, _, err := e.send(&relayv1.Request{Method: http.MethodGet, Path: "/readyz"})
		require.NoError(t, err)
		for _, raw := range [][]byte{first, second} {
			a := &relayv1.Answer{}
			if proto.Unmarshal(raw, a) == nil {
				e.answer(s, a)
			}
		}
		e.end(errRemoved)
		a, open := <-answered
		if !open {
			return
		}
		request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, "https://west.relay/readyz", nil)
		require.NoError(t, err)
		r := response(request, a)
		body, err := io.ReadAll(r.Body)
		require.NoError(t, err)
		require.Equal(t, string(a.GetBody()), string(body))
		require.NoError(t, r.Body.Close())
		require.Empty(t, answered, "a request has one answer")
	})
}
