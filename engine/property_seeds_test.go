package engine_test

import (
	"iter"
	"testing"

	"github.com/meshctl/meshctl/demo/waittest"
)

// rounds is how many random histories a property is tried on, in each run other ones.
const rounds = 16

// seeds are those of n random histories, and of further ones until enough was seen of what the test is about. They
// follow from the seed of the test, which is printed.
func seeds(t *testing.T, n int, enough ...func() bool) iter.Seq[int64] {
	t.Helper()
	first := int64(waittest.Seed(t) % (1 << 31))
	missing := func() bool {
		for _, e := range enough {
			if !e() {
				return true
			}
		}
		return false
	}
	return func(yield func(int64) bool) {
		for i := range int64(20 * n) {
			if i >= int64(n) && !missing() {
				return
			}
			if !yield(first + i) {
				return
			}
		}
		if missing() {
			t.Errorf("%d random histories have too little of what is tried", 20*n)
		}
	}
}
