package apply_test

import (
	"strconv"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/meshctl/meshctl/engine/apply"
	"github.com/meshctl/meshctl/engine/snapshot"
)

// byHand changes the spec of the stored object, or deletes it if there is none.
func (s *fakeServer) byHand(suffix, manager string, spec map[string]any) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for path, o := range s.objects {
		if path[len(path)-len(suffix):] != suffix {
			continue
		}
		s.version++
		if spec == nil {
			delete(s.objects, path)
			s.send(path, "DELETED", o)
			return
		}
		meta := o["metadata"].(map[string]any)
		own := meta["managedFields"].([]any)
		changed := map[string]any{"apiVersion": o["apiVersion"], "kind": o["kind"], "spec": spec, "metadata": map[string]any{
			"name": meta["name"], "namespace": meta["namespace"], "labels": meta["labels"], "annotations": meta["annotations"],
			"resourceVersion": strconv.Itoa(s.version), "managedFields": append(own, map[string]any{
				"manager": manager, "operation": "Update", "time": "2026-01-02T03:04:05Z", "fieldsV1": map[string]any{"f:spec": map[string]any{"f:content": map[string]any{}}},
			}),
		}}
		s.objects[path] = changed
		s.send(path, "MODIFIED", changed)
	}
}

// TestRepairsAreExplained: what somebody else did to an object is told with the write that puts it back; what is created or edited
// because of a translation is none.
func TestRepairsAreExplained(t *testing.T) {
	t.Parallel()
	var sets []apply.ChangeSet
	inBubble(t, func(b *bubble) {
		settle := func(out *snapshot.Output) (reverted []snapshot.Drift) {
			b.Helper()
			if out != nil {
				b.sink.Apply(out)
			}
			time.Sleep(10 * time.Second)
			require.NoError(b, b.sink.Settled(b.Context()))
			for _, set := range sets {
				for _, c := range set.Changes {
					if c.Reverted != nil {
						reverted = append(reverted, *c.Reverted)
					}
				}
			}
			sets = nil
			return reverted
		}
		assert.Empty(b, settle(policies(1, "a")))
		assert.Empty(b, settle(policies(1, "b")), "an edit is no repair")

		b.byHand("policy-00000", "kubectl-patch", map[string]any{"content": "evil"})
		put := settle(nil)
		require.Len(b, put, 1)
		assert.Equal(b, snapshot.DriftChanged, put[0].State)
		assert.Equal(b, "kubectl-patch", put[0].By)
		assert.Equal(b, []snapshot.DriftField{{Path: "spec.content", InForce: "evil", Wanted: "b"}}, put[0].Fields)
		assert.Equal(b, map[string]any{"content": "b"}, b.object("policy-00000")["spec"])

		b.byHand("policy-00000", "", nil)
		put = settle(nil)
		require.Len(b, put, 1)
		assert.Equal(b, snapshot.DriftMissing, put[0].State)

		assert.Empty(b, settle(policies(1, "c")))
	}, func(o *apply.Options) {
		o.ExplainRepairs, o.OnChange = true, func(s apply.ChangeSet) { sets = append(sets, s) }
	})
}
