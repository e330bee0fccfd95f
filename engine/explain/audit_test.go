package explain_test

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/meshctl/meshctl/engine"
	commonv1 "github.com/meshctl/meshctl/engine/api/common/v1"
	"github.com/meshctl/meshctl/engine/explain"
	"github.com/meshctl/meshctl/engine/snapshot"
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
