package cmdutil

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestSort(t *testing.T) {
	t.Parallel()
	type item struct {
		Name string `json:"name,omitempty"`
		Size int    `json:"size"`
	}
	list := []item{{"cluster-10", 1}, {"", 9}, {"cluster-2", 100}, {"Cluster", 20}}
	for path, want := range map[string][]int{".name": {20, 100, 1, 9}, "{.size}": {1, 9, 20, 100}, "size": {1, 9, 20, 100}} {
		var flag SortFlag
		require.NoError(t, flag.Set(path))
		sorted := append([]item{}, list...)
		require.NoError(t, Sort(&flag, sorted, func(i item) any { return &i }))
		var got []int
		for _, i := range sorted {
			got = append(got, i.Size)
		}
		assert.Equal(t, want, got, path)
	}
	var flag SortFlag
	require.NoError(t, flag.Set(".metadata.name"))
	assert.ErrorContains(t, Sort(&flag, list, func(i item) any { return &i }), `--sort-by: path {.metadata.name}: there is no field "metadata"; there is: name, size`)
	assert.Error(t, flag.Set("{"))
	for _, order := range [][2]string{{"a", "b"}, {"a2", "a10"}, {"a", "a1"}, {"a02", "a3"}, {"", "a"}, {"a01", "a1"}} {
		assert.Negative(t, natural(order[0], order[1]), order)
		assert.Positive(t, natural(order[1], order[0]), order)
	}
}

func TestSelector(t *testing.T) {
	t.Parallel()
	var flag SelectorFlag
	assert.True(t, flag.Matches(nil))
	require.NoError(t, flag.Set("app=a,version in (v1, v2)"))
	assert.True(t, flag.Matches(map[string]string{"app": "a", "version": "v2"}))
	assert.False(t, flag.Matches(map[string]string{"app": "a"}))
	assert.ErrorContains(t, flag.Set("=="), "write labels as kubectl does")
}
