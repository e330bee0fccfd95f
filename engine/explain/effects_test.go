package explain_test

import (
	"encoding/json"
	"os"
	"testing"

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
	entries, err := os.ReadDir(cases)
	require.NoError(t, err)
	for _, entry := range entries {
		t.Run(entry.Name(), func(t *testing.T) {
			t.Parallel()
			translator := engine.New(engine.Options{})
			input := load(t, entry.Name())
			with := explain.New(translator.Translate(input))
			require.Empty(t, explain.Effects(with, with))
			for _, ref := range writtenIn(input) {
				without := explain.New(translator.Translate(input.Without(ref)))
				gone, back := explain.Effects(with, without), explain.Effects(without, with)
				assert.ElementsMatch(t, facts(gone, false), facts(back, true), "%s", ref)
				for _, e := range gone {
					assert.NotEmpty(t, e.Text())
					assert.False(t, e.Before != "" && e.Before == e.After, "%s: %s", ref, e.Text())
				}
				planned, err := explain.Plan(with, without, []explain.PlannedChange{{Ref: ref, Verb: explain.Deleted}})
				require.NoError(t, err)
				assert.False(t, planned.Empty())
				assert.Len(t, planned.Counts, len(planned.Clusters))
				_, err = json.Marshal(planned)
				require.NoError(t, err)
			}
		})
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
