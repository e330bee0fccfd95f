package engine_test

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/meshctl/meshctl/engine"
	"github.com/meshctl/meshctl/engine/offline"
	"github.com/meshctl/meshctl/engine/snapshot"
)

// TestWhatProtectsStaysInAmbientMode: on a service whose pods went to ambient mode, the AccessPolicies stay that were in force, as its
// stored status says, also where only that status is new to the translator; without a status, none is.
func TestWhatProtectsStaysInAmbientMode(t *testing.T) {
	t.Parallel()
	with, _, err := offline.Load(offline.Dir("../testdata/world/ambient-kept/in"))
	require.NoError(t, err)
	require.Len(t, with.Management.Destinations, 1)
	management, without := *with.Management, *with
	management.Destinations = nil
	without.Management = &management

	guards := func(s *snapshot.State) (out []snapshot.Ref) {
		for o := range s.Output.Written {
			if o.Ref.Kind == snapshot.AuthorizationPolicy {
				out = append(out, o.Ref)
			}
		}
		return out
	}
	kept := []snapshot.Ref{{Kind: snapshot.AuthorizationPolicy, Cluster: "cluster-1", Namespace: "till", Name: "orders"}}
	memo := engine.New(engine.Options{})
	for _, step := range []struct {
		in   *snapshot.Input
		want []snapshot.Ref
	}{{&without, nil}, {with, kept}, {&without, nil}, {with, kept}} {
		now := memo.Translate(step.in)
		assert.Equal(t, step.want, guards(now))
		fresh := engine.Translate(step.in)
		assert.Equal(t, fresh.Output.Issues, now.Output.Issues)
		assert.Equal(t, fresh.Output.Statuses.Len(), now.Output.Statuses.Len())
	}
}
