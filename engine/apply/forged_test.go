package apply_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/meshctl/meshctl/engine/snapshot"
)

// TestAStatusSaysOnlyWhatWeSay: what somebody else writes into it goes, whether it was
// there before or comes later, and an actor that goes on is not fought as fast as possible.
func TestAStatusSaysOnlyWhatWeSay(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	specs := map[snapshot.Kind]map[string]any{
		snapshot.TrafficPolicy: {"policy": map[string]any{"requestTimeout": "1s"}},
		snapshot.AccessPolicy:  {"allowedPaths": []any{"/"}},
		snapshot.VirtualMesh:   {"meshes": []any{map[string]any{"name": "a", "namespace": "b"}}},
	}
	const forged = `{"status":{"errors":["forged"],"warnings":["forged"],"state":"INVALID"}}`
	forge := func(k snapshot.Kind, kind types.PatchType, document string) {
		t.Helper()
		_, err := w.of(k).Patch(t.Context(), "a", kind, []byte(document), metav1.PatchOptions{FieldManager: "somebody"}, "status")
		require.NoError(t, err)
	}
	sink, _ := w.run()
	sink.Set("", w.config)
	out := output([]string{one}, w.discovered(one, "a"))
	said := map[snapshot.Kind]map[string]any{snapshot.Destination: {"localFqdn": "a.svc", "observedGeneration": int64(1)}}
	statuses := []*snapshot.Status{w.status(snapshot.Destination, "a", said[snapshot.Destination])}
	for _, k := range []snapshot.Kind{snapshot.VirtualMesh, snapshot.TrafficPolicy, snapshot.AccessPolicy} {
		w.user(k, "a", nil, specs[k])
		forge(k, types.MergePatchType, forged)
		said[k] = map[string]any{"state": "ACCEPTED", "observedGeneration": int64(1)}
		statuses = append(statuses, w.status(k, "a", said[k]))
	}
	out.Statuses = snapshot.ListOf(statuses)
	sink.apply(out)
	for k, status := range said {
		assert.Equal(t, status, w.get(k, "a").Object["status"], "%s: what was there before", k)
	}
	asSaid := func(k snapshot.Kind, what string) {
		t.Helper()
		w.eventually(fmt.Sprintf("%s: %s is gone", k, what), func() bool {
			return assert.ObjectsAreEqual(said[k], w.get(k, "a").Object["status"])
		})
	}
	for k := range said {
		document := forged
		if k == snapshot.Destination {
			document = `{"status":{"localFqdn":"evil.svc","appliedTrafficPolicies":[{"ref":{"name":"forged","namespace":"x"}}]}}`
		}
		forge(k, types.MergePatchType, document)
		asSaid(k, "what a client has merged")
	}
	// Also by a server-side apply, and what is the same as ours stays.
	forge(snapshot.TrafficPolicy, types.ApplyPatchType, fmt.Sprintf(`{"apiVersion":"networking.mesh.gloo.solo.io/v1","kind":"TrafficPolicy",
		"metadata":{"name":"a","namespace":%q},"status":{"state":"ACCEPTED","errors":["forged"]}}`, w.namespace))
	asSaid(snapshot.TrafficPolicy, "what somebody applied")

	// What we say is still ours to take back.
	said[snapshot.TrafficPolicy] = map[string]any{"observedGeneration": int64(2)}
	last := *out
	last.Statuses = snapshot.ListOf([]*snapshot.Status{w.status(snapshot.TrafficPolicy, "a", said[snapshot.TrafficPolicy])})
	sink.apply(&last)
	asSaid(snapshot.TrafficPolicy, "the state")

	sink.settle()
	sink.total()
	began, forgeries := time.Now(), 0
	for ; time.Since(began) < 3*time.Second; forgeries++ {
		forge(snapshot.TrafficPolicy, types.MergePatchType, fmt.Sprintf(`{"status":{"errors":["forged %d"]}}`, forgeries))
	}
	repairs := sink.total().Statuses
	t.Logf("%d forgeries in 3 s, %d repairs", forgeries, repairs)
	assert.LessOrEqual(t, repairs, 12, "repairs are spaced: 0.2 s, doubled each time")
	asSaid(snapshot.TrafficPolicy, "what was written last")
}
