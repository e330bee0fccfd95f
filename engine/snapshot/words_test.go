package snapshot_test

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"

	"github.com/meshctl/meshctl/engine/snapshot"
)

func TestCount(t *testing.T) {
	t.Parallel()
	for want, of := range map[string]struct {
		n    int
		word string
	}{
		"0 policies": {0, "policy"}, "1 policy": {1, "policy"}, "2 policies": {2, "policy"},
		"1 mesh": {1, "mesh"}, "12 meshes": {12, "mesh"}, "0 services": {0, "service"},
	} {
		assert.Equal(t, want, snapshot.Count(of.n, of.word))
	}
}

func TestShortFingerprints(t *testing.T) {
	t.Parallel()
	long := strings.Repeat("a", 64)
	for _, tt := range []struct{ all, want []string }{
		{nil, nil},
		{[]string{long}, []string{"aaaaaaaa"}},
		{[]string{long, long, "abc"}, []string{"aaaaaaaa", "aaaaaaaa", "abc"}},
		{[]string{long, "b" + long[1:], "aaaaaaaaab" + long[10:]}, []string{"aaaaaaaaaa", "baaaaaaaaa", "aaaaaaaaab"}},
		{[]string{"aaaaaaaaaa", "aaaaaaaaa"}, []string{"aaaaaaaaaa", "aaaaaaaaa"}},
	} {
		short := snapshot.ShortFingerprints(tt.all)
		var got []string
		for _, f := range tt.all {
			got = append(got, short(f))
		}
		assert.Equal(t, tt.want, got)
	}
}
