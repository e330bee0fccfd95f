package apply_test

import (
	"context"
	"encoding/json"
	"log/slog"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/meshctl/meshctl/engine/apply"
	"github.com/meshctl/meshctl/engine/mesh/istio"
	"github.com/meshctl/meshctl/engine/snapshot"
)

// end lets all writes pass, and checks what the clusters come to.
func (s *schedule) end() {
	for _, server := range s.servers {
		server.answers(func(string) (int, string) { return 0, "" })
	}
	s.note("everything works")
	ctx, cancel := context.WithTimeout(s.Context(), 2*time.Minute)
	defer cancel()
	require.NoError(s, s.sink.Settled(ctx), "it does not settle")
	time.Sleep(2 * grace)
	require.NoError(s, s.sink.Settled(s.Context()))
	assert.Empty(s, s.sink.Failures())
	s.note("it has settled")

	var want []string
	for _, o := range s.wanted() {
		want = append(want, keyOf(o.Ref))
	}
	slices.Sort(want)
	var got []string
	for cluster, server := range s.servers {
		server.mu.Lock()
		for path, o := range server.objects {
			segments := strings.Split(path, "/")
			key := cluster + "/" + segments[len(segments)-2] + "/" + segments[len(segments)-1]
			got = append(got, key)
			for _, w := range s.wanted() {
				if keyOf(w.Ref) == key {
					assert.Equal(s, plain(s.T, w.Content.Spec), o["spec"], key)
				}
			}
		}
		server.mu.Unlock()
	}
	slices.Sort(got)
	assert.Equal(s, want, got)
	s.mu.Lock()
	writes := s.writes
	s.mu.Unlock()

	s.sink.ApplyEdited(output([]string{one, two}, s.wanted()...), apply.Edits{})
	require.NoError(s, s.sink.Settled(s.Context()))
	s.another()
	s.mu.Lock()
	defer s.mu.Unlock()
	assert.Equal(s, writes, s.writes, "nothing was left to write")
	assert.Empty(s, s.violations)
}

// another runs a second process, which finds everything as it is wanted.
func (s *schedule) another() {
	other := &sinkOf{
		apply.New(apply.Options{Namespace: "plane", Log: slog.New(slog.DiscardHandler), Widen: istio.Renderer{}.Widen}),
		newFleet(s.T, snapshot.Plane{Namespace: "plane"}),
	}
	ctx, cancel := context.WithCancel(s.Context())
	done := make(chan struct{})
	go func() { defer close(done); other.Run(ctx) }()
	for cluster, server := range s.servers {
		other.Set(cluster, server.config())
	}
	other.ApplyEdited(output([]string{one, two}, s.wanted()...), apply.Edits{})
	assert.NoError(s, other.Settled(ctx))
	cancel()
	<-done
	other.stop()
}

// plain is a spec as it is stored.
func plain(t *testing.T, spec any) map[string]any {
	t.Helper()
	raw, err := json.Marshal(spec)
	require.NoError(t, err)
	var out map[string]any
	require.NoError(t, json.Unmarshal(raw, &out))
	return out
}
