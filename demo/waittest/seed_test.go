package waittest

import (
	"testing"

	"github.com/stretchr/testify/assert"
)

// TestADrawIsRepeated: one text chooses one seed for a test, others for other tests, and another text another one.
func TestADrawIsRepeated(t *testing.T) {
	t.Setenv(SeedVariable, "")
	t.Setenv(DrawVariable, "a commit")
	seed := Seed(t)
	assert.Equal(t, seed, Seed(t))
	t.Run("other", func(t *testing.T) { assert.NotEqual(t, seed, Seed(t)) })
	t.Setenv(DrawVariable, "the next")
	assert.NotEqual(t, seed, Seed(t))
	t.Setenv(SeedVariable, "7")
	assert.Equal(t, uint64(7), Seed(t))
}
