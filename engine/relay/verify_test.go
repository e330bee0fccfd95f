package relay

import (
	"testing"

	"github.com/stretchr/testify/assert"
)

// TestSumsOfBothSides: sender, receiver and a list of the same objects come to the same; and names tell what differs.
func TestSumsOfBothSides(t *testing.T) {
	t.Parallel()
	a, b := newSet(), newSet()
	a.put(Key{"n", "x"}, HashOf([]byte("1")))
	a.put(Key{"", "y"}, HashOf([]byte("2")))
	b.put(Key{"", "y"}, HashOf([]byte("2")))
	b.put(Key{"n", "x"}, HashOf([]byte("1")))
	sum, hashes := HashesOf(map[Key][]byte{{"n", "x"}: []byte("1"), {"", "y"}: []byte("2")})
	assert.Equal(t, sum, a.sum())
	assert.Equal(t, sum, b.sum())
	assert.Equal(t, hashes, a.hashes())
	assert.Empty(t, Differing(a.hashes(), b.hashes(), hashes))

	b.put(Key{"n", "x"}, HashOf([]byte("3")))
	b.remove(Key{"", "y"})
	assert.NotEqual(t, sum, b.sum())
	got := Differing(a.hashes(), b.hashes(), hashes)
	assert.Len(t, got, 2)
	assert.Equal(t, "y: the hub has d4735e3a, the agent has none, the cluster has d4735e3a", got["/y"].String())
	assert.Equal(t, "n/x: the hub has 6b86b273, the agent has 4e074085, the cluster has 6b86b273", got["n/x"].String())
	assert.Len(t, Differing(nil, b.hashes(), nil), 1)
	assert.Empty(t, Differing(b.hashes(), b.hashes(), nil), "the cluster was not listed")
}
