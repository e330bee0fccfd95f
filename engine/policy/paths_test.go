package policy

import (
	"testing"

	"github.com/stretchr/testify/assert"

	"github.com/meshctl/meshctl/engine/snapshot"
)

// TestPathsThatCanBeLeft: which spellings lead out of a path depends on the path, and on
// what the mesh does to it.
func TestPathsThatCanBeLeft(t *testing.T) {
	t.Parallel()
	const (
		slashes = "/a/..%2fadmin, /a/..%5cadmin"
		dots    = "/a/../admin, " + slashes
	)
	for name, c := range map[string]struct {
		path, normalization string
		want                string // the paths that also pass
	}{
		"as they are":       {"/a/*", snapshot.PathsAsTheyAre, dots},
		"Istio's default":   {"/a/*", snapshot.PathsBase, slashes},
		"merged":            {"/a/*", snapshot.PathsMerged, slashes},
		"decoded":           {"/a/*", snapshot.PathsDecoded, ""},
		"not known":         {"/a/*", "", ""},
		"a part of a word":  {"/a*", snapshot.PathsBase, slashes},
		"a segment":         {"/a/{*}/info", snapshot.PathsBase, "/a/..%2fadmin/info, /a/..%5cadmin/info"},
		"several segments":  {"/a/{*}/b/{**}", snapshot.PathsBase, slashes},
		"exact":             {"/a", snapshot.PathsAsTheyAre, ""},
		"an ending":         {"*/a", snapshot.PathsAsTheyAre, ""},
		"everything":        {"/*", snapshot.PathsAsTheyAre, ""},
		"everything, short": {"*", snapshot.PathsAsTheyAre, ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			mesh := &snapshot.MeshPlan{Ref: snapshot.Ref{Kind: snapshot.Mesh, Name: "m"}, PathNormalization: c.normalization}
			issues := pathIssues(&snapshot.AccessRule{Paths: []string{"/exact", c.path}}, mesh)
			if c.want == "" {
				assert.Empty(t, issues)
				return
			}
			assert.Len(t, issues, 1)
			assert.Contains(t, issues[0].Message, "so that "+c.path+" also allows "+c.want+", which lead out of /a/ in")
			assert.Equal(t, snapshot.PathsNotNormalized, issues[0].Code)
			assert.Equal(t, snapshot.Warning, issues[0].Severity)
		})
	}
}
