package mirror

import (
	"strconv"
	"testing"

	"github.com/stretchr/testify/assert"

	"github.com/meshctl/meshctl/engine/snapshot"
)

func TestRelationsAreReadAsTheyWereStored(t *testing.T) {
	t.Parallel()
	said := snapshot.Relations{
		Needs:    []snapshot.Name{{Name: "a"}, {Name: "b", Local: true}},
		Provides: []snapshot.Name{{Name: "c", Home: true}, {Name: "d", Together: true}, {Name: "e", Local: true, Home: true}},
		Protects: true,
	}
	r := RelationsOf(&said)
	read := ReadRelations(r.Annotation())
	for _, n := range r.Needs {
		assert.Equal(t, n.Text == "b", n.Key("cluster-1") != n.Key("cluster-2"), "each cluster has local names of its own")
	}
	for i := range r.Needs {
		r.Needs[i].Text = ""
	}
	for i := range r.Provides {
		r.Provides[i].Text = ""
	}
	assert.Equal(t, r, read)
	none := Relations{}
	assert.Empty(t, none.Annotation())

	var many snapshot.Relations
	for i := range 3 * maxNames {
		many.Provides = append(many.Provides, snapshot.Name{Name: strconv.Itoa(i)})
		many.Needs = many.Provides
	}
	annotation := RelationsOf(&many).Annotation()
	assert.Less(t, len(annotation), 160<<10, "beside the other annotations")
	assert.Len(t, ReadRelations(annotation).Provides, maxNames)
}

func FuzzReadRelations(f *testing.F) {
	for _, seed := range []string{"", "{", `{"needs":"AAAA"}`, `{"needs":1}`, `{"provides":"!"}`, `{"protects":true}`, `{"needs":"AAAAAAAAAAAB"}`} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, text string) {
		r := ReadRelations(text)
		again := ReadRelations(r.Annotation())
		if len(r.Needs) <= maxNames && len(r.Provides) <= maxNames {
			assert.Len(t, again.Needs, len(r.Needs))
			assert.Equal(t, r.Protects, again.Protects)
		}
	})
}
