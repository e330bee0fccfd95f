package engine_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"math/rand"
	"path/filepath"
	"runtime/debug"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/meshctl/meshctl/demo/waittest"
	"github.com/meshctl/meshctl/engine"
	"github.com/meshctl/meshctl/engine/explain"
	"github.com/meshctl/meshctl/engine/offline"
	"github.com/meshctl/meshctl/engine/snapshot"
)

// damages is how many damaged objects are tried in each golden case. An API
// server refuses most of them, but CRDs may be older, and folders have none.
// Not every change gives a damaged object: at most maxTries of them may be
// needed for each.
const damages, maxTries = 40, 5

// generatedEvery is after how many of them all that is generated is printed, which takes as long as all the rest.
const generatedEvery = 8

// TestDamagedObjects: an Input with missing, empty or invalid values in any
// object is translated and explained without a panic, and incremental
// translation gives the same result.
func TestDamagedObjects(t *testing.T) {
	t.Parallel()
	seed := int64(waittest.Seed(t))
	inEachCase(t, func(t *testing.T, n int, in *snapshot.Input) {
		t.Helper()
		r := rand.New(rand.NewSource(seed + int64(n)))
		before := text(t, engine.Translate(in).Output)
		translator := engine.New(engine.Options{})
		translator.Translate(in)
		all := refs(in)
		for made, tried := 0, 0; made < damages; tried++ {
			require.Less(t, tried, maxTries*damages, "of %d changes only %d gave a damaged object", tried, made)
			damaged, what := damagedInput(t, r, in, all[r.Intn(len(all))])
			if damaged == nil {
				continue
			}
			made++
			state := translated(t, engine.Translate, damaged, what)
			explained(t, state, what, made%generatedEvery == 0)
			full := text(t, state.Output)
			requireSame(t, full, text(t, translated(t, translator.Translate, damaged, what).Output), what)
			requireSame(t, before, text(t, translated(t, translator.Translate, in, what).Output), "after "+what)
		}
	})
}

// inEachCase runs a test on the input of every case of testdata/translate, and
// passes the number of the case.
func inEachCase(t *testing.T, test func(t *testing.T, n int, in *snapshot.Input)) {
	t.Helper()
	folders, err := filepath.Glob("../testdata/translate/*/in")
	require.NoError(t, err)
	require.NotEmpty(t, folders)
	for n, folder := range folders {
		t.Run(filepath.Base(filepath.Dir(folder)), func(t *testing.T) {
			t.Parallel()
			in, _, err := offline.Load(offline.Dir(folder))
			require.NoError(t, err)
			test(t, n, in)
		})
	}
}

func translated(t *testing.T, translate func(*snapshot.Input) *snapshot.State, in *snapshot.Input, what string) *snapshot.State {
	t.Helper()
	defer func() {
		if broken := recover(); broken != nil {
			require.Fail(t, "panic", "with %s: %v\n%s", what, broken, debug.Stack())
		}
	}()
	return translate(in)
}

// explained describes every object, and may print what is generated for each.
func explained(t *testing.T, state *snapshot.State, what string, generated bool) {
	t.Helper()
	defer func() {
		if broken := recover(); broken != nil {
			require.Fail(t, "panic", "explaining with %s: %v\n%s", what, broken, debug.Stack())
		}
	}()
	index := explain.New(state)
	tables := []explain.Table{index.Tables(nil).Fleet(), index.Tables(nil).Policies(), index.Tables(nil).Problems(time.Time{})}
	for _, kind := range explain.Kinds() {
		tables = append(tables, index.List(kind))
	}
	for _, table := range tables {
		for _, row := range table.Rows {
			require.Len(t, row.Cells, len(table.Columns), "%s: %s", what, row.Ref)
		}
	}
	for _, kind := range explain.Kinds() {
		for _, ref := range index.Refs(kind) {
			require.NotEmpty(t, index.Describe(ref).Page().Title, "%s: %s", what, ref)
			if generated {
				_, err := index.Generated(ref)
				require.NoError(t, err, "%s: %s", what, ref)
			}
		}
	}
}

// requireSame fails with the lines in which two texts differ.
func requireSame(t *testing.T, want, got, what string) {
	t.Helper()
	if want == got {
		return
	}
	wanted, gotten := strings.Split(want, "\n"), strings.Split(got, "\n")
	missing := slices.DeleteFunc(slices.Clone(wanted), func(line string) bool { return slices.Contains(gotten, line) })
	extra := slices.DeleteFunc(gotten, func(line string) bool { return slices.Contains(wanted, line) })
	require.Fail(t, "incremental translation gives another result", "with %s\nmissing:\n%s\nunexpected:\n%s", what, strings.Join(missing, "\n"), strings.Join(extra, "\n"))
}

// damagedInput returns the Input with something wrong in one of its objects, and
// what; nil if the result is no such object any more, or the same as before.
func damagedInput(t *testing.T, r *rand.Rand, in *snapshot.Input, ref snapshot.Ref) (*snapshot.Input, string) {
	t.Helper()
	before, err := json.Marshal(in.Find(ref))
	require.NoError(t, err)
	var tree map[string]any
	require.NoError(t, json.Unmarshal(before, &tree))
	what := spoil(tree, r)
	written, err := json.Marshal(tree)
	require.NoError(t, err)
	damaged := ref.Kind.New()
	if json.Unmarshal(written, damaged) != nil {
		return nil, ""
	}
	after, err := json.Marshal(damaged)
	require.NoError(t, err)
	if bytes.Equal(before, after) {
		return nil, ""
	}
	out, err := in.With(ref.Cluster, damaged)
	require.NoError(t, err)
	return out, what + "of " + ref.String()
}

// spoil changes one or two values of an object, but not what it is called.
func spoil(tree map[string]any, r *rand.Rand) string {
	what := ""
	for range 1 + r.Intn(2) {
		spots := spotsIn(tree, "")
		if len(spots) == 0 {
			return what
		}
		p := spots[r.Intn(len(spots))]
		what += p.change(r) + " "
	}
	return what
}

// spot is a value in a tree, and how to put another one there.
type spot struct {
	path   string
	set    func(any)
	remove func()
}

func (p spot) change(r *rand.Rand) string {
	values := []any{nil, "", "*", "0", "no such thing", 0, -1, 1 << 31, true, false, map[string]any{}, []any{}, []any{nil}, []any{map[string]any{}}}
	if at := r.Intn(2 * len(values)); at < len(values) {
		p.set(values[at])
		return fmt.Sprintf("%s: %v", p.path, values[at])
	}
	p.remove()
	return "no " + p.path
}

func spotsIn(v any, path string) []spot {
	var out []spot
	switch v := v.(type) {
	case map[string]any:
		for _, key := range slices.Sorted(maps.Keys(v)) {
			at := path + "." + key
			if at == ".kind" || at == ".apiVersion" || at == ".metadata.name" || at == ".metadata.namespace" {
				continue
			}
			if at != ".metadata" {
				out = append(out, spot{path: at, set: func(x any) { v[key] = x }, remove: func() { delete(v, key) }})
			}
			out = append(out, spotsIn(v[key], at)...)
		}
	case []any:
		for i := range v {
			at := fmt.Sprintf("%s[%d]", path, i)
			out = append(out, spot{path: at, set: func(x any) { v[i] = x }, remove: func() { v[i] = nil }})
			out = append(out, spotsIn(v[i], at)...)
		}
	}
	return out
}
