package apply_test

import (
	"fmt"
	"net/http"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/meshctl/meshctl/engine/apply"
	"github.com/meshctl/meshctl/engine/snapshot"
)

// TestObjectsThatWaitForLongAreReported: what nobody edited away stays for the grace period, and what somebody else keeps changing is
// repaired less often. Neither is a failure, and both are told.
func TestObjectsThatWaitForLongAreReported(t *testing.T) {
	t.Parallel()
	inBubble(t, func(b *bubble) {
		told := func() string {
			failures := b.sink.Failures()
			if len(failures) == 0 {
				return ""
			}
			require.Len(b, failures, 1)
			assert.Equal(b, snapshot.Ref{Kind: snapshot.KubernetesCluster, Namespace: "plane", Name: one}, failures[0].Ref)
			assert.Equal(b, snapshot.ObjectsWait, failures[0].Code)
			assert.NotEmpty(b, failures[0].Hint)
			return failures[0].What
		}
		wanted := func(n int) *snapshot.Output {
			out := policies(n, "same")
			out.Withdrawals = snapshot.Withdrawals{Grace: time.Minute, MaxPercent: 100}
			return out
		}
		b.sink.Apply(wanted(3))
		require.NoError(b, b.sink.Settled(b.Context()))
		b.sink.ApplyEdited(wanted(1), apply.Edits{})
		time.Sleep(time.Second)
		assert.Empty(b, told(), "it may end in a moment")
		time.Sleep(10 * time.Second)
		assert.Equal(b, "no longer wanted, and kept for the grace period because no edit explains it: "+
			"AuthorizationPolicy cluster-1/ns/policy-00001 and 1 more", told())
		time.Sleep(time.Minute)
		assert.Empty(b, told())
		assert.Equal(b, 1, b.stored())

		const path = "/apis/security.istio.io/v1/namespaces/ns/authorizationpolicies/policy-00000"
		for range 10 {
			b.mu.Lock()
			_, err := b.store(http.MethodDelete, path, nil)
			b.mu.Unlock()
			require.NoError(b, err)
			time.Sleep(3 * time.Second)
		}
		assert.Equal(b, "changed by somebody else again and again, and repaired less often: AuthorizationPolicy cluster-1/ns/policy-00000", told())
		time.Sleep(5 * time.Minute)
		assert.Empty(b, told())
	})
}

// TestDiscoveredObjectsThatGoAreNoNews: they stay for the grace period whenever a Deployment is deleted, and there is no cluster of
// which that could be told.
func TestDiscoveredObjectsThatGoAreNoNews(t *testing.T) {
	t.Parallel()
	inBubble(t, func(b *bubble) {
		b.sink.Set("", b.config())
		wanted := func(n int) *snapshot.Output {
			var objects []*snapshot.Object
			for i := range n {
				objects = append(objects, &snapshot.Object{
					Ref:     snapshot.Ref{Kind: snapshot.Workload, Namespace: "plane", Name: fmt.Sprintf("workload-%d", i)},
					Content: &snapshot.Content{Labels: map[string]string{snapshot.DiscoveryOwnerLabel: "plane", snapshot.DiscoveryClusterLabel: one}, Spec: map[string]any{}},
				})
			}
			out := output([]string{one}, objects...)
			out.Withdrawals = snapshot.Withdrawals{Grace: time.Minute, MaxPercent: 100}
			return out
		}
		b.sink.Apply(wanted(3))
		require.NoError(b, b.sink.Settled(b.Context()))
		require.Equal(b, 3, b.stored())
		b.sink.ApplyEdited(wanted(1), apply.Edits{})
		time.Sleep(10 * time.Second)
		require.Equal(b, 3, b.stored(), "they stay for the grace period")
		assert.Empty(b, b.sink.Failures())
	})
}

// TestObjectsThatWaitAreReportedAgain when a cluster that was forgotten is connected again.
func TestObjectsThatWaitAreReportedAgain(t *testing.T) {
	t.Parallel()
	inBubble(t, func(b *bubble) {
		out := policies(3, "same")
		out.Withdrawals = snapshot.Withdrawals{Grace: time.Hour, MaxPercent: 100}
		b.sink.Apply(out)
		require.NoError(b, b.sink.Settled(b.Context()))
		fewer := policies(1, "same")
		fewer.Withdrawals = out.Withdrawals
		b.sink.ApplyEdited(fewer, apply.Edits{})
		time.Sleep(10 * time.Second)
		require.Len(b, b.sink.Failures(), 1)
		b.sink.Remove(one)
		time.Sleep(time.Minute)
		require.Empty(b, b.sink.Failures())
		b.sink.Set(one, b.config())
		time.Sleep(time.Minute)
		assert.Len(b, b.sink.Failures(), 1)
	})
}
