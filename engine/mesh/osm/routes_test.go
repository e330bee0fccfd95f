package osm

import (
	"regexp"
	"testing"

	"github.com/stretchr/testify/assert"

	"github.com/meshctl/meshctl/engine/snapshot"
)

func TestPathRegexTakesWholePaths(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		path        string
		in, without []string
	}{
		{"*", []string{"/", "/a"}, nil},
		{"/api/v1.0", []string{"/api/v1.0"}, []string{"/api/v1x0", "/api/v1.0/", "/x/api/v1.0"}},
		{"/api/*", []string{"/api/", "/api/a/b"}, []string{"/api", "/x/api/"}},
		{"*/info", []string{"/info", "/a/info"}, []string{"/info/", "/infos"}},
		{"/a+(b)", []string{"/a+(b)"}, []string{"/aab"}},
	} {
		re := regexp.MustCompile("^(?:" + pathRegex(c.path) + ")$") // proxies match the whole path
		for _, path := range c.in {
			assert.True(t, re.MatchString(path), "%s takes %s", c.path, path)
		}
		for _, path := range c.without {
			assert.False(t, re.MatchString(path), "%s takes %s", c.path, path)
		}
	}
}

func TestOverlapOfPaths(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		a, b string
		want bool
	}{
		{"*", "/a", true},
		{"/a", "/a", true},
		{"/a", "/b", false},
		{"/a*", "/ab", true},
		{"/a*", "/b", false},
		{"/a*", "/ab*", true},
		{"/a*", "/b*", false},
		{"*/b", "/a/b", true},
		{"*/b", "/a/c", false},
		{"*/b", "*a/b", true},
		{"*/b", "*/c", false},
		{"/a*", "*/b", true},
	} {
		assert.Equal(t, c.want, overlapPaths(c.a, c.b), "%s %s", c.a, c.b)
		assert.Equal(t, c.want, overlapPaths(c.b, c.a), "%s %s", c.b, c.a)
	}
}

func TestBeside(t *testing.T) {
	t.Parallel()
	x, y := snapshot.Account{Namespace: "n", Name: "x"}, snapshot.Account{Namespace: "n", Name: "y"}
	grant := func(path string, ports []uint32, from ...snapshot.Account) *snapshot.Grant {
		return &snapshot.Grant{Rule: &snapshot.AccessRule{Paths: []string{path}}, From: from, Ports: ports}
	}
	for name, c := range map[string]struct {
		a, b *snapshot.Grant
		ok   bool
	}{
		"the same for others":               {grant("/a", nil, x), grant("/a", nil, y), true},
		"other routes":                      {grant("/a", nil, x), grant("/b", nil, y), true},
		"routes that overlap":               {grant("/a*", nil, x), grant("/ab", nil, y), false},
		"routes that overlap, same callers": {grant("/a*", nil, x), grant("/ab", nil, x), true},
		"ports and routes of one caller":    {grant("/a", []uint32{1}, x), grant("/b", []uint32{2}, x), false},
		"ports of one caller":               {grant("/a", []uint32{1}, x), grant("/a", []uint32{2}, x), true},
		"ports and routes of two":           {grant("/a", []uint32{1}, x), grant("/b", []uint32{2}, y), true},
	} {
		assert.Equal(t, c.ok, beside(c.a, c.b) == "", "%s: %s", name, beside(c.a, c.b))
		assert.Equal(t, c.ok, beside(c.b, c.a) == "", name)
	}
}
