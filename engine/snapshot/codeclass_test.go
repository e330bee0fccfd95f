package snapshot

import (
	"go/ast"
	"go/parser"
	"go/token"
	"slices"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// TestEachCodeHasOneClass compares the table with codes.go.
func TestEachCodeHasOneClass(t *testing.T) {
	t.Parallel()
	file, err := parser.ParseFile(token.NewFileSet(), "codes.go", nil, 0)
	require.NoError(t, err)
	var declared, classed []string
	ast.Inspect(file, func(n ast.Node) bool {
		if spec, is := n.(*ast.ValueSpec); is {
			declared = append(declared, spec.Names[0].Name)
		}
		return true
	})
	for _, codes := range codeClasses {
		for _, code := range codes {
			classed = append(classed, string(code))
		}
	}
	slices.Sort(declared)
	slices.Sort(classed)
	require.NotEmpty(t, declared)
	assert.Equal(t, declared, classed)
}

// TestRejects: an error rejects its object if an edit of that object fixes it; else the object is accepted, and not in force.
func TestRejects(t *testing.T) {
	t.Parallel()
	wrong, down, known := Errorf(FieldInvalid, "", ""), Errorf(GatewayNotReady, "", ""), Warnf(GatewayNotReady, "", "")
	for name, c := range map[string]struct {
		issues   []Issue
		rejected bool
		unmet    *Issue
	}{
		"nothing":       {},
		"a warning":     {issues: []Issue{known}},
		"a wrong field": {issues: []Issue{known, wrong}, rejected: true},
		"a gateway":     {issues: []Issue{known, down}, unmet: &down},
		"both":          {issues: []Issue{wrong, down}, rejected: true, unmet: &down},
	} {
		assert.Equal(t, c.rejected, Rejected(c.issues), name)
		assert.Equal(t, c.unmet, Unmet(c.issues), name)
	}
}
