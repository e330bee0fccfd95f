package engine_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"

	"github.com/meshctl/meshctl/engine"
	"github.com/meshctl/meshctl/engine/explain"
	"github.com/meshctl/meshctl/engine/snapshot"
)

// TestEveryFieldIsDeclared: every renderer declares what its mesh makes of each
// field of the API.
func TestEveryFieldIsDeclared(t *testing.T) {
	t.Parallel()
	for _, dialect := range engine.Dialects() {
		for _, s := range explain.DeclaredFields() {
			for _, path := range s.Fields {
				_, ok := dialect.Of(s.Kind, path, "")
				assert.True(t, ok, "%s says nothing of %s.%s: add it to support.go of its renderer", dialect.Name, s.Kind, path)
			}
		}
	}
}

// TestDeclarationsAreOfFields: what is declared exists, once, with a reason
// where it is not simply done.
func TestDeclarationsAreOfFields(t *testing.T) {
	t.Parallel()
	fields := map[snapshot.Kind][]string{}
	for _, s := range explain.DeclaredFields() {
		fields[s.Kind] = s.Fields
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

// TestWhatUsersWriteIsRead: each kind that users write for meshes is read for one kind of mesh, and no other kind is.
func TestWhatUsersWriteIsRead(t *testing.T) {
	t.Parallel()
	read := map[snapshot.Kind]string{}
	for _, dialect := range engine.Dialects() {
		for kind := range dialect.Reads {
			assert.True(t, kind.Info().ByHand, "%s reads %s, of which no list holds objects: mark its row in the table of kinds", dialect.Name, kind)
			assert.Empty(t, read[kind], "%s is read twice", kind)
			read[kind] = dialect.Name
		}
	}
	for _, kind := range snapshot.Kinds(snapshot.ManagedSide, snapshot.Watch|snapshot.Write) {
		assert.Equal(t, kind.Info().ByHand, read[kind] != "", "%s", kind)
	}
}
