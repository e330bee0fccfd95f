package apply_test

import (
	"fmt"
	"net/http"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/meshctl/meshctl/engine/snapshot"
)

// TestStatusesOfManyChangesAreWrittenOnce: policies on one service are deleted one after
// the other, and each that goes moves all others up by one.
func TestStatusesOfManyChangesAreWrittenOnce(t *testing.T) {
	t.Parallel()
	inBubble(t, func(b *bubble) {
		const many, steps = 300, 30
		path := func(n int) string {
			return fmt.Sprintf("/apis/networking.mesh.gloo.solo.io/v1/namespaces/ns/trafficpolicies/policy-%05d", n)
		}
		b.mu.Lock()
		for n := range many {
			response, err := b.store(http.MethodPatch, path(n), fmt.Appendf(nil,
				`{"apiVersion":"networking.mesh.gloo.solo.io/v1","kind":"TrafficPolicy","metadata":{"name":"policy-%05d","namespace":"ns"}}`, n))
			require.NoError(b, err)
			require.NoError(b, response.Body.Close())
		}
		b.mu.Unlock()
		statuses := func(from int) *snapshot.Output {
			var list []*snapshot.Status
			for n := from; n < many; n++ {
				list = append(list, &snapshot.Status{
					Ref:   snapshot.Ref{Kind: snapshot.TrafficPolicy, Namespace: "ns", Name: fmt.Sprintf("policy-%05d", n)},
					Value: map[string]any{"order": n - from},
				})
			}
			out := output([]string{one})
			out.Statuses = snapshot.ListOf(list)
			return out
		}
		b.sink.Set("", b.config())
		b.sink.Apply(statuses(0))
		require.NoError(b, b.sink.Settled(b.Context()))
		require.Equal(b, many, b.count())

		began := time.Now()
		for n := range steps {
			b.sink.Apply(statuses(n + 1))
			time.Sleep(100 * time.Millisecond)
		}
		assert.Zero(b, b.count(), "they change again")
		require.NoError(b, b.sink.Settled(b.Context()))
		assert.Equal(b, many-steps, b.count())
		b.Logf("%d changes of all statuses in 3 s: written %s after the first", steps, time.Since(began))

		// One that changes among many does not wait.
		last := statuses(steps)
		b.sink.Apply(last)
		require.NoError(b, b.sink.Settled(b.Context()))
		time.Sleep(time.Minute)
		value := *last.Statuses.Slice()[0]
		value.Value = map[string]any{"order": 7}
		edited := *last
		edited.Statuses = last.Statuses.With(map[int]*snapshot.Status{0: &value})
		b.sink.Apply(&edited)
		began = time.Now()
		require.NoError(b, b.sink.Settled(b.Context()))
		assert.Less(b, time.Since(began), crowdWait)

		// Changes that never pause are written in between.
		b.count()
		for n := range 400 {
			b.sink.Apply(statuses(n % 2))
			time.Sleep(100 * time.Millisecond)
		}
		assert.Positive(b, b.count())
	})
}

// crowdWait is shorter than statuses of great changes wait.
const crowdWait = 400 * time.Millisecond
