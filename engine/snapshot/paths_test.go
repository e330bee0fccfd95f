package snapshot

import (
	"testing"

	"github.com/stretchr/testify/assert"
)

func TestComparedPath(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ normalization, path, want string }{
		{PathsBase, "//a/..%2fb", "//a/..%2fb"},
		{PathsMerged, "//a///b?q=//", "/a/b?q=//"},
		{PathsMerged, "/a%2f%2fb", "/a%2f%2fb"},
		{PathsDecoded, "/a%2F..%5cb//c?x=%2f", "/b/c?x=%2f"},
		{PathsDecoded, "/a//..%2fb", "/a/b"},
		{PathsDecoded, "/a/b%2f..", "/a/"},
		{PathsDecoded, "/..%2f..%2fa/", "/a/"},
		{PathsAsTheyAre, "//a", "//a"},
	} {
		assert.Equal(t, c.want, (&MeshPlan{PathNormalization: c.normalization}).ComparedPath(c.path), c.path)
	}
}
