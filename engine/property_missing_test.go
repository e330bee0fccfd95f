package engine_test

import (
	"encoding/json"
	"slices"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	appsv1 "k8s.io/api/apps/v1"

	"github.com/meshctl/meshctl/engine"
	"github.com/meshctl/meshctl/engine/snapshot"
)

// objectsOf are the generated objects of all meshes.
func objectsOf(t *testing.T, out *snapshot.Output) map[snapshot.Ref]string {
	t.Helper()
	all := map[snapshot.Ref]string{}
	for o := range out.Objects {
		if o.Ref.Cluster != "" {
			body, err := json.Marshal(o.Content.Spec)
			require.NoError(t, err)
			all[o.Ref] = string(body)
		}
	}
	return all
}

// TestAMissingControlPlaneChangesNothing: a control plane that is deleted, as by who
// installs it again, changes nothing in any cluster until it is gone for good.
func TestAMissingControlPlaneChangesNothing(t *testing.T) {
	t.Parallel()
	var missing atomic.Int32
	t.Cleanup(func() { assert.Greater(t, missing.Load(), int32(100)) })
	inEachCase(t, func(t *testing.T, _ int, in *snapshot.Input) {
		t.Helper()
		translator := engine.New(engine.Options{})
		before := translator.Translate(in)
		for range 3 {
			in = echo(in, before.Output)
			before = translator.Translate(in)
		}
		without := *in
		without.Clusters = nil
		absent := map[string]bool{}
		for _, d := range before.Discovered {
			for _, m := range d.Meshes {
				absent[m.Name] = true
			}
		}
		for _, c := range in.Clusters {
			now := *c
			now.Deployments = slices.DeleteFunc(slices.Clone(c.Deployments), func(d *appsv1.Deployment) bool {
				return absent[snapshot.Sanitize(d.Name+"-"+d.Namespace+"-"+c.Name)]
			})
			without.Clusters = append(without.Clusters, &now)
		}
		after := translator.Translate(&without)
		assert.Equal(t, objectsOf(t, before.Output), objectsOf(t, after.Output))
		for _, d := range after.Discovered {
			missing.Add(int32(len(d.Absent)))
			without.Gone = append(without.Gone, d.Absent...)
		}

		// For good.
		slices.Sort(without.Gone)
		for _, d := range translator.Translate(&without).Discovered {
			for _, m := range d.Meshes {
				assert.NotContains(t, without.Gone, m.Name)
			}
			assert.Empty(t, d.Absent)
		}
	})
}
