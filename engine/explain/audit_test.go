package explain_test

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/meshctl/meshctl/engine"
	"github.com/meshctl/meshctl/engine/explain"
	"github.com/meshctl/meshctl/engine/snapshot"
)

// TestAuditWithoutAMesh: of services whose mesh is not known, as it is not stored and their cluster cannot be read, each question about what
// is audited has an answer.
func TestAuditWithoutAMesh(t *testing.T) {
	t.Parallel()
	input := stored(engine.Translate(load(t, "audit")))
	for _, c := range input.Clusters {
		c.Sync, c.Reason = snapshot.Unsynced, "it does not answer"
	}
	input.Management.Meshes = nil
	state := engine.Translate(input)
	services := 0
	for d := range state.Plan.Destinations.All() {
		require.Nil(t, d.Mesh, d.Ref)
		services++
	}
	require.Equal(t, 3, services)
	index := explain.New(state)
	for _, kind := range explain.Kinds() {
		for _, row := range index.List(kind).Rows {
			description := index.Describe(row.Ref)
			require.NotNil(t, description, row.Ref)
			assert.NotEmpty(t, description.Page().Sections, row.Ref)
		}
	}
	for _, name := range []string{"cart-for-shop", "orders-not-for-web", "orders-for-till", "cache-read-only"} {
		audit := describe[*explain.Policy](t, index, snapshot.AccessPolicy, name).Audit
		require.NotNil(t, audit, name)
		assert.Empty(t, audit.Refused, "%s: a service without a mesh closes to nobody", name)
	}
}
