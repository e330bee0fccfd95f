package explain

import (
	"maps"
	"reflect"
	"slices"
	"strings"

	enterprisev1beta1 "github.com/meshctl/meshctl/engine/api/enterprise/v1beta1"
	networkingv1 "github.com/meshctl/meshctl/engine/api/networking/v1"
	settingsv1 "github.com/meshctl/meshctl/engine/api/settings/v1"
	"github.com/meshctl/meshctl/engine/snapshot"
)

// KindFields are the fields of a kind that users write.
type KindFields struct {
	Kind snapshot.Kind
	// Fields are paths below spec, as snapshot.FieldsOf returns them, ascending.
	Fields []string
}

// DeclaredFields lists the kinds, and their fields, about which every renderer
// declares what its mesh makes of them.
func DeclaredFields() []KindFields {
	return []KindFields{
		{snapshot.TrafficPolicy, specFields[networkingv1.TrafficPolicySpec]()},
		{snapshot.AccessPolicy, specFields[networkingv1.AccessPolicySpec]()},
		{snapshot.VirtualMesh, specFields[networkingv1.VirtualMeshSpec]()},
		{snapshot.VirtualDestination, specFields[enterprisev1beta1.VirtualDestinationSpec]()},
		{snapshot.ServiceDependency, specFields[enterprisev1beta1.ServiceDependencySpec]()},
		{snapshot.Settings, specFields[settingsv1.SettingsSpec]()},
	}
}

func specFields[T any]() []string { return snapshot.FieldsOf(reflect.TypeFor[T]()) }

// SupportRow says what each kind of mesh makes of a field.
type SupportRow struct {
	// Field is a path below spec. Fields below it that all meshes treat alike
	// have no row of their own.
	Field string
	// Case narrows the row to certain values, in words; empty for all others.
	Case string
	// Security marks fields that decide who may call or read.
	Security bool
	// Cells are level and note of each dialect, such as "enforced".
	Cells []string
}

// SupportTable lists the fields of a kind, ascending, with what the dialects
// declare of them.
func SupportTable(of KindFields, dialects []*snapshot.Dialect) []SupportRow {
	table := supportTable{kind: of.Kind, dialects: dialects}
	root := &supportNode{}
	for _, path := range of.Fields {
		node := root.at(path)
		for _, d := range dialects {
			declared, _ := d.Of(of.Kind, path, "")
			node.cells = append(node.cells, cell(declared))
		}
	}
	for _, d := range dialects {
		for _, f := range d.Fields {
			if f.Kind == of.Kind && f.Case != "" {
				node := root.at(f.Path)
				node.cases = append(node.cases, f.Case)
			}
		}
	}
	for _, name := range slices.Sorted(maps.Keys(root.below)) {
		table.add(name, root.below[name])
	}
	return table.rows
}

func cell(s snapshot.Support) string {
	if s.Note == "" {
		return s.String()
	}
	return s.String() + ": " + s.Note
}

// supportNode is a field in the tree of fields.
type supportNode struct {
	// cells of each dialect; none if there are fields below.
	cells []string
	cases []string
	below map[string]*supportNode
}

// at is the node of a path, which is made if there is none.
func (n *supportNode) at(path string) *supportNode {
	for name := range strings.SplitSeq(path, ".") {
		if n.below == nil {
			n.below = map[string]*supportNode{}
		}
		if n.below[name] == nil {
			n.below[name] = &supportNode{}
		}
		n = n.below[name]
	}
	return n
}

// common is what a dialect says of every field of a node; false if it says
// different things, or if a field below has cases.
func (n *supportNode) common(dialect int) (string, bool) {
	if len(n.below) == 0 {
		return n.cells[dialect], true
	}
	seen := map[string]bool{}
	all := true
	for _, below := range n.below {
		text, alike := below.common(dialect)
		seen[text] = true
		all = all && alike && len(below.cases) == 0
	}
	if !all || len(seen) > 1 {
		return "differs by field", false
	}
	return slices.Collect(maps.Keys(seen))[0], true
}

type supportTable struct {
	kind     snapshot.Kind
	dialects []*snapshot.Dialect
	rows     []SupportRow
}

// add adds one row for a node if every dialect says one thing of it, else rows
// for the nodes below; then rows for its cases.
func (t *supportTable) add(path string, n *supportNode) {
	cells, all := make([]string, len(t.dialects)), true
	for i := range t.dialects {
		text, alike := n.common(i)
		cells[i], all = text, all && alike
	}
	security := snapshot.Support{Kind: t.kind, Path: path}.Security()
	if all {
		t.rows = append(t.rows, SupportRow{Field: path, Security: security, Cells: cells})
	} else {
		for _, name := range slices.Sorted(maps.Keys(n.below)) {
			t.add(path+"."+name, n.below[name])
		}
	}
	for _, of := range slices.Compact(slices.Sorted(slices.Values(n.cases))) {
		row := SupportRow{Field: path, Case: of, Security: security, Cells: slices.Clone(cells)}
		for i, d := range t.dialects {
			if declared, ok := d.Of(t.kind, path, of); ok {
				row.Cells[i] = cell(declared)
			} else if declared, ok := d.Of(t.kind, path, ""); ok {
				row.Cells[i] = cell(declared) // it makes no difference between values
			}
		}
		t.rows = append(t.rows, row)
	}
}
