package explain_test

import (
	"encoding/json"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/meshctl/meshctl/engine"
	"github.com/meshctl/meshctl/engine/explain"
	"github.com/meshctl/meshctl/engine/snapshot"
)

// TestEffectsAreMirrored deletes each policy of each case, and brings it back: what the first does,
// the second undoes, and nothing at all has no effect.
func TestEffectsAreMirrored(t *testing.T) {
	t.Parallel()
	eachCase(t, func(t *testing.T, name string) {
		t.Helper()
		translator := engine.New(engine.Options{})
		input := load(t, name)
		with := explain.New(translator.Translate(input))
		require.Empty(t, explain.Effects(with, with))
		for _, ref := range writtenIn(input) {
			planned, without, err := with.Plan(translator.Translate, []explain.Edit{{Ref: ref}}, time.Time{})
			require.NoError(t, err)
			gone, back := explain.Effects(with, without), explain.Effects(without, with)
			assert.ElementsMatch(t, facts(gone, false), facts(back, true), "%s", ref)
			for _, e := range gone {
				assert.NotEmpty(t, e.Text())
				assert.False(t, e.Before != "" && e.Before == e.After, "%s: %s", ref, e.Text())
			}
			assert.False(t, planned.Empty())
			assert.Len(t, planned.Counts, len(planned.Clusters))
			_, err = json.Marshal(planned)
			require.NoError(t, err)
		}
	})
}

// TestLimitsHarm: who may ask for less than before is harmed, and who may ask for more is not.
func TestLimitsHarm(t *testing.T) {
	t.Parallel()
	limited := func(methods, paths []string) *explain.Index {
		in := load(t, "bookinfo")
		for _, p := range in.Management.AccessPolicies {
			if p.Name == "reviews-calls" {
				p.Spec.AllowedMethods, p.Spec.AllowedPaths = methods, paths
			}
		}
		return explain.New(engine.Translate(in))
	}
	for name, tt := range map[string]struct {
		before, after [2][]string
		harm          bool
	}{
		"a limit":                  {after: [2][]string{{"GET"}}, harm: true},
		"no limit any more":        {before: [2][]string{{"GET"}}},
		"one method more":          {before: [2][]string{{"GET"}}, after: [2][]string{{"GET", "POST"}}},
		"one method less":          {before: [2][]string{{"GET", "POST"}}, after: [2][]string{{"GET"}}, harm: true},
		"another method":           {before: [2][]string{{"GET"}}, after: [2][]string{{"POST"}}, harm: true},
		"paths instead of methods": {before: [2][]string{{"GET"}}, after: [2][]string{nil, {"/a"}}, harm: true},
		"a path more":              {before: [2][]string{nil, {"/a"}}, after: [2][]string{nil, {"/a", "/b"}}},
		"a wider path":             {before: [2][]string{nil, {"/a/b"}}, after: [2][]string{nil, {"/a/*"}}},
		"a narrower path":          {before: [2][]string{nil, {"/a/*"}}, after: [2][]string{nil, {"/a/b"}}, harm: true},
	} {
		effects := explain.Effects(limited(tt.before[0], tt.before[1]), limited(tt.after[0], tt.after[1]))
		if assert.NotEmpty(t, effects, name) {
			for _, e := range effects {
				assert.Equal(t, tt.harm, e.Harm, "%s: %s", name, e.Text())
			}
		}
	}
}

// writtenIn are the objects that users write.
func writtenIn(in *snapshot.Input) (refs []snapshot.Ref) {
	for kind, list := range in.Management.Lists {
		switch kind {
		case snapshot.TrafficPolicy, snapshot.AccessPolicy, snapshot.VirtualMesh, snapshot.VirtualDestination, snapshot.ServiceDependency:
			for i := range list.Len() {
				refs = append(refs, snapshot.RefOf(kind, list.At(i)))
			}
		}
	}
	return refs
}

// fact is an effect without what says whether it is good or bad.
type fact struct {
	kind            explain.EffectKind
	on              snapshot.Ref
	from, workloads string
	what            string
	before, after   string
}

// facts are effects, turned around or not.
func facts(effects []explain.Effect, turned bool) (out []fact) {
	for _, e := range effects {
		from, _ := json.Marshal(e.From)
		workloads, _ := json.Marshal(e.Workloads)
		f := fact{kind: e.Kind, on: e.On, from: string(from), workloads: string(workloads), before: e.Before, after: e.After}
		if e.Kind != explain.EffectAccess && e.Kind != explain.EffectLocality {
			f.what = e.What
		}
		if turned {
			f.before, f.after = f.after, f.before
		}
		out = append(out, f)
	}
	return out
}
