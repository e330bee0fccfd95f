package engine_test

import (
	"flag"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"

	"github.com/meshctl/meshctl/engine"
	enterprisev1beta1 "github.com/meshctl/meshctl/engine/api/enterprise/v1beta1"
	networkingv1 "github.com/meshctl/meshctl/engine/api/networking/v1"
	settingsv1 "github.com/meshctl/meshctl/engine/api/settings/v1"
	"github.com/meshctl/meshctl/engine/readmetest"
	"github.com/meshctl/meshctl/engine/snapshot"
)

var update = flag.Bool("update", false, "rewrite golden files")

// specs are what users can write that meshes are to do something about.
var specs = []struct {
	kind snapshot.Kind
	spec reflect.Type
}{
	{snapshot.TrafficPolicy, reflect.TypeFor[networkingv1.TrafficPolicySpec]()},
	{snapshot.AccessPolicy, reflect.TypeFor[networkingv1.AccessPolicySpec]()},
	{snapshot.VirtualMesh, reflect.TypeFor[networkingv1.VirtualMeshSpec]()},
	{snapshot.VirtualDestination, reflect.TypeFor[enterprisev1beta1.VirtualDestinationSpec]()},
	{snapshot.ServiceDependency, reflect.TypeFor[enterprisev1beta1.ServiceDependencySpec]()},
	{snapshot.Settings, reflect.TypeFor[settingsv1.SettingsSpec]()},
}

// TestEveryFieldIsDeclared: a new field of the API needs a word from every
// renderer on what its mesh makes of it.
func TestEveryFieldIsDeclared(t *testing.T) {
	t.Parallel()
	for _, dialect := range engine.Dialects() {
		for _, s := range specs {
			for _, path := range snapshot.FieldsOf(s.spec) {
				_, ok := dialect.Of(s.kind, path, "")
				assert.True(t, ok, "%s says nothing of %s.%s: add it to support.go of its renderer", dialect.Name, s.kind, path)
			}
		}
	}
}

// TestDeclarationsAreOfFields: what is declared exists, once, with a reason
// where it is not simply done.
func TestDeclarationsAreOfFields(t *testing.T) {
	t.Parallel()
	fields := map[snapshot.Kind][]string{}
	for _, s := range specs {
		fields[s.kind] = snapshot.FieldsOf(s.spec)
	}
	for _, dialect := range engine.Dialects() {
		seen := map[snapshot.Support]bool{}
		for _, f := range dialect.Fields {
			name := fmt.Sprintf("%s: %s.%s %s", dialect.Name, f.Kind, f.Path, f.Case)
			assert.True(t, slices.ContainsFunc(fields[f.Kind], func(path string) bool {
				return path == f.Path || strings.HasPrefix(path, f.Path+".")
			}), "%s: there is no such field", name)
			key := snapshot.Support{Kind: f.Kind, Path: f.Path, Case: f.Case}
			assert.False(t, seen[key], "%s: declared twice", name)
			seen[key] = true
			assert.True(t, f.Level == snapshot.Enforced || f.Note != "", "%s: say why", name)
		}
	}
}

const (
	tableBegin = "<!-- generated from the renderers' declarations by `make golden` -->\n"
	tableEnd   = "<!-- end of what is generated -->\n"
)

// TestGoldenSupport keeps the README's table at what the renderers declare.
func TestGoldenSupport(t *testing.T) {
	t.Parallel()
	readmetest.Section(t, "../README.md", tableBegin, tableEnd, supportTable(), *update)
}

func supportTable() string {
	var b strings.Builder
	dialects := engine.Dialects()
	b.WriteString("\n| |")
	for _, d := range dialects {
		b.WriteString(" " + d.Name + " |")
	}
	b.WriteString("\n|---|" + strings.Repeat("---|", len(dialects)) + "\n")
	for _, s := range specs {
		b.WriteString("| **" + s.kind.String() + "** |" + strings.Repeat(" |", len(dialects)) + "\n")
		root := &node{}
		for _, path := range snapshot.FieldsOf(s.spec) {
			root.add(strings.Split(path, "."), cellsOf(dialects, s.kind, path, ""))
		}
		for _, d := range dialects {
			for _, f := range d.Fields {
				if f.Kind == s.kind && f.Case != "" {
					root.find(strings.Split(f.Path, ".")).addCase(f.Case, cellsOf(dialects, f.Kind, f.Path, f.Case))
				}
			}
		}
		for _, name := range slices.Sorted(maps.Keys(root.below)) {
			root.below[name].write(&b, s.kind, name)
		}
	}
	b.WriteString("\n")
	return b.String()
}

// cellsOf spells what each dialect says of a field, or of a case of it.
func cellsOf(dialects []*snapshot.Dialect, kind snapshot.Kind, path, of string) string {
	var cells []string
	for _, d := range dialects {
		s, ok := d.Of(kind, path, of)
		if !ok {
			s, _ = d.Of(kind, path, "") // it tells no cases apart
		}
		cell := s.String()
		if s.Note != "" {
			cell += ": " + s.Note
		}
		cells = append(cells, cell)
	}
	return " " + strings.Join(cells, " | ") + " |"
}

// node is a field in the tree of fields; what is the same for all fields below
// it is written once.
type node struct {
	cells string
	below map[string]*node
	cases map[string]string
}

func (n *node) add(path []string, cells string) {
	if len(path) == 0 {
		n.cells = cells
		return
	}
	if n.below == nil {
		n.below = map[string]*node{}
	}
	if n.below[path[0]] == nil {
		n.below[path[0]] = &node{}
	}
	n.below[path[0]].add(path[1:], cells)
}

func (n *node) find(path []string) *node {
	for _, name := range path {
		n = n.below[name]
	}
	return n
}

func (n *node) addCase(of, cells string) {
	if n.cases == nil {
		n.cases = map[string]string{}
	}
	n.cases[of] = cells
}

// same is the cells of all fields below, and false if they are not alike.
func (n *node) same() (string, bool) {
	cells, ok := n.cells, true
	for _, below := range n.below {
		c, alike := below.same()
		ok = ok && alike && len(below.cases) == 0 && (cells == "" || c == cells)
		cells = c
	}
	return cells, ok
}

func (n *node) write(b *strings.Builder, kind snapshot.Kind, path string) {
	mark := ""
	if (snapshot.Support{Kind: kind, Path: path}).Security() && kind != snapshot.AccessPolicy {
		mark = " (security)"
	}
	cells, same := n.same()
	if same {
		fmt.Fprintf(b, "| `%s`%s |%s\n", path, mark, cells)
	} else {
		for _, name := range slices.Sorted(maps.Keys(n.below)) {
			n.below[name].write(b, kind, path+"."+name)
		}
	}
	for _, of := range slices.Sorted(maps.Keys(n.cases)) {
		fmt.Fprintf(b, "| `%s` %s%s |%s\n", path, of, mark, n.cases[of])
	}
}
