package engine_test

import (
	"encoding/json"
	"fmt"
	"maps"
	"math/rand"
	"path/filepath"
	"reflect"
	"runtime/debug"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/meshctl/meshctl/engine"
	"github.com/meshctl/meshctl/engine/explain"
	"github.com/meshctl/meshctl/engine/offline"
	"github.com/meshctl/meshctl/engine/snapshot"
)

// damages tried on each golden case. An API server lets nothing of the kind
// pass where the CRD forbids it, but CRDs may be older, and folders have none.
const damages = 60

// TestDamagedObjects: whatever is missing, empty or senseless in an object, be
// it a policy or what stands in a cluster, it is translated or refused; and what
// is remembered gives the same answer.
func TestDamagedObjects(t *testing.T) {
	t.Parallel()
	inEachCase(t, func(t *testing.T, n int, in *snapshot.Input) {
		t.Helper()
		r := rand.New(rand.NewSource(int64(n)))
		before := text(t, engine.Translate(in).Output)
		translator := engine.New(engine.Options{})
		translator.Translate(in)
		all := damageable(in)
		for range damages {
			one := all[r.Intn(len(all))]
			damaged, what := one.damage(t, r)
			if damaged == nil {
				continue
			}
			state := translated(t, engine.Translate, damaged, what)
			explained(t, state, what)
			full := text(t, state.Output)
			requireSame(t, full, text(t, translated(t, translator.Translate, damaged, what).Output), what)
			requireSame(t, before, text(t, translated(t, translator.Translate, in, what).Output), "after "+what)
		}
	})
}

// inEachCase runs a test in the world of every golden case, which is given with
// its number.
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

// explained asks about all there is.
func explained(t *testing.T, state *snapshot.State, what string) {
	t.Helper()
	defer func() {
		if broken := recover(); broken != nil {
			require.Fail(t, "panic", "explaining with %s: %v\n%s", what, broken, debug.Stack())
		}
	}()
	index := explain.New(state)
	tables := []explain.Table{index.Fleet(nil), index.Policies(), index.Problems()}
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
			_, err := index.Generated(ref)
			require.NoError(t, err, "%s: %s", what, ref)
		}
	}
}

// requireSame shows of two texts the lines in which they differ.
func requireSame(t *testing.T, want, got, what string) {
	t.Helper()
	if want == got {
		return
	}
	wanted, gotten := strings.Split(want, "\n"), strings.Split(got, "\n")
	missing := slices.DeleteFunc(slices.Clone(wanted), func(line string) bool { return slices.Contains(gotten, line) })
	extra := slices.DeleteFunc(gotten, func(line string) bool { return slices.Contains(wanted, line) })
	require.Fail(t, "what is remembered changes the answer", "with %s\nmissing:\n%s\ntoo much:\n%s", what, strings.Join(missing, "\n"), strings.Join(extra, "\n"))
}

// object is one that stands somewhere in an Input.
type object struct {
	in *snapshot.Input
	// cluster is the number of its cluster; -1 is the management plane.
	cluster, field, index int
}

// damageable lists the objects of an Input.
func damageable(in *snapshot.Input) []object {
	var out []object
	list := func(cluster int, holder reflect.Value) {
		for f := range holder.NumField() {
			if list := holder.Field(f); list.Kind() == reflect.Slice {
				for i := range list.Len() {
					out = append(out, object{in, cluster, f, i})
				}
			}
		}
	}
	list(-1, reflect.ValueOf(*in.Management))
	for i, c := range in.Clusters {
		list(i, reflect.ValueOf(*c))
	}
	return out
}

// damage returns the Input with something wrong in the object, and what; nil if
// what comes of it is no such object any more.
func (o object) damage(t *testing.T, r *rand.Rand) (*snapshot.Input, string) {
	t.Helper()
	out, management := *o.in, *o.in.Management
	out.Management = &management
	holder := reflect.ValueOf(&management).Elem()
	if o.cluster >= 0 {
		cluster := *o.in.Clusters[o.cluster]
		out.Clusters = slices.Clone(o.in.Clusters)
		out.Clusters[o.cluster] = &cluster
		holder = reflect.ValueOf(&cluster).Elem()
	}
	list := holder.Field(o.field)
	list.Set(reflect.AppendSlice(reflect.MakeSlice(list.Type(), 0, list.Len()), list))
	item := list.Index(o.index)

	written, err := json.Marshal(item.Interface())
	require.NoError(t, err)
	var tree map[string]any
	require.NoError(t, json.Unmarshal(written, &tree))
	what := spoil(tree, r)
	written, err = json.Marshal(tree)
	require.NoError(t, err)
	damaged := reflect.New(item.Type().Elem())
	if json.Unmarshal(written, damaged.Interface()) != nil {
		return nil, ""
	}
	item.Set(damaged)
	return &out, fmt.Sprintf("%s of %s %d of cluster %d", what, holder.Type().Field(o.field).Name, o.index, o.cluster)
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
