package snapshot_test

import (
	"testing"

	"github.com/stretchr/testify/assert"

	"github.com/meshctl/meshctl/engine/snapshot"
)

// TestDerivedMakesWhatChanged goes through lists of sources, and looks at which
// values are made from what.
func TestDerivedMakesWhatChanged(t *testing.T) {
	t.Parallel()
	type source struct{ key, text string }
	type value struct{ text string }
	a, b, c := &source{"a", "1"}, &source{"b", "2"}, &source{"c", "3"}
	b2 := &source{"b", "4"}

	var d snapshot.Derived[*source, *value]
	var made []string
	update := func(sources ...*source) bool {
		made = nil
		return d.Update(snapshot.ListOf(sources), func(s *source) string { return s.key }, func(s *source, old *value) *value {
			was := ""
			if old != nil {
				was = old.text
			}
			made = append(made, s.key+":"+was+"->"+s.text)
			return &value{s.text}
		})
	}
	texts := func() string {
		out := ""
		for v := range d.Values.All() {
			out += v.text
		}
		return out
	}

	for _, step := range []struct {
		sources []*source
		changed bool
		made    []string
		texts   string
	}{
		{nil, false, nil, ""},
		{[]*source{a, b}, true, []string{"a:->1", "b:->2"}, "12"},
		{[]*source{a, b}, false, nil, "12"},
		{[]*source{a, b2}, true, []string{"b:2->4"}, "14"},
		{[]*source{a, b2, c}, true, []string{"c:->3"}, "143"},
		{[]*source{b2, c}, true, nil, "43"},
		{[]*source{b, c}, true, []string{"b:4->2"}, "23"},
		{nil, true, nil, ""},
	} {
		assert.Equal(t, step.changed, update(step.sources...))
		assert.Equal(t, step.made, made)
		assert.Equal(t, step.texts, texts())
	}
}
