package explain_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/meshctl/meshctl/engine"
	commonv1 "github.com/meshctl/meshctl/engine/api/common/v1"
	"github.com/meshctl/meshctl/engine/enginetest"
	"github.com/meshctl/meshctl/engine/explain"
	"github.com/meshctl/meshctl/engine/snapshot"
	"github.com/meshctl/meshctl/engine/traffic"
)

// TestAuditWithoutAMesh: of a service whose mesh is not stored, beside others with one and with the same namespace, each question about what is
// audited has an answer.
func TestAuditWithoutAMesh(t *testing.T) {
	t.Parallel()
	const cache = "cache-shop-cluster-1"
	input := stored(engine.Translate(load(t, "audit")))
	for _, d := range input.Management.Destinations {
		if d.Name == cache {
			d.Spec.Mesh = &commonv1.ObjectRef{Name: "gone", Namespace: snapshot.DefaultNamespace}
		}
	}
	for _, p := range input.Management.AccessPolicies {
		if p.Name == "orders-not-for-web" { // what is denied is compared with other services of a namespace
			p.Spec.DestinationSelector = append(p.Spec.DestinationSelector, commonv1.DestinationSelector{KubeServiceMatcher: &commonv1.KubeServiceMatcher{Namespaces: []string{"shop"}}})
		}
	}
	state := engine.Translate(input)
	without := map[string]bool{}
	for d := range state.Plan.Destinations.All() {
		without[d.Ref.Name] = d.Mesh == nil
	}
	require.Equal(t, map[string]bool{cache: true, "cart-shop-cluster-1": false, "orders-till-cluster-1": false}, without)
	index := explain.New(state)
	for _, kind := range explain.Kinds() {
		for _, row := range index.List(kind).Rows {
			description := index.Describe(row.Ref)
			require.NotNil(t, description, row.Ref)
			assert.NotEmpty(t, description.Page().Sections, row.Ref)
		}
	}
	for name, refused := range map[string]int{"cart-for-shop": 1, "orders-not-for-web": 2, "orders-for-till": 1, "cache-read-only": 0} {
		audit := describe[*explain.Policy](t, index, snapshot.AccessPolicy, name).Audit
		require.NotNil(t, audit, name)
		assert.Len(t, audit.Refused, refused, name)
	}
}

// TestAuditAfterAnEdit: what proxies tried before something about access changed was not what is audited now.
func TestAuditAfterAnEdit(t *testing.T) {
	t.Parallel()
	state, now := engine.Translate(load(t, "audit")), time.Date(2026, 7, 1, 12, 0, 0, 0, time.UTC)
	tried := []enginetest.Sent{
		{From: "web-front-cluster-1-statefulset", To: "orders-till-cluster-1", Counts: map[snapshot.Measure]uint64{snapshot.Answered2xx: 40}},
		{To: "orders-till-cluster-1-statefulset", Counts: map[snapshot.Measure]uint64{snapshot.Answered2xx: 41, snapshot.ShadowRefused: 41}},
	}
	for name, tt := range map[string]struct {
		kind  snapshot.Kind
		since time.Time
		want  string
	}{
		"an edit":                {snapshot.AccessPolicy, now.Add(-5 * time.Minute), "; what they tried before 2026-07-01T11:55:30Z was not yet what is audited now"},
		"of a VirtualMesh":       {snapshot.VirtualMesh, now.Add(-2 * time.Minute), "; what they tried before 2026-07-01T11:58:30Z was not yet what is audited now"},
		"one that tries nothing": {snapshot.TrafficPolicy, now.Add(-5 * time.Minute), ""},
	} {
		report := enginetest.Report(state, now, tried)
		report.Changed = []traffic.Changed{{On: snapshot.Ref{Kind: tt.kind, Namespace: "gloo-mesh", Name: "changed"}, Since: tt.since}}
		index := explain.WithEvidence(explain.New(state), &explain.Evidence{Report: report})
		seen := describe[*explain.Policy](t, index, snapshot.AccessPolicy, "orders-not-for-web").Audit.Seen
		assert.Equal(t, "In the last 15m, it would have refused 41 of 41 requests, as the proxies of the pods that were called count"+tt.want+"; 1 caller would not be let in at all.", seen.Text(), name)
	}
}
