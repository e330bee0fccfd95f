package snapshot_test

import (
	"cmp"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/meshctl/meshctl/demo/waittest"
	"github.com/meshctl/meshctl/engine/snapshot"
)

func numbers(n int) []int {
	out := make([]int, n)
	for i := range out {
		out[i] = 10 * (i + 1)
	}
	return out
}

func TestListKeepsOrderAndLength(t *testing.T) {
	t.Parallel()
	for _, n := range []int{0, 1, 127, 128, 129, 1000} {
		l := snapshot.ListOf(numbers(n))
		assert.Equal(t, n, l.Len())
		assert.Equal(t, numbers(n), append([]int{}, l.Slice()...))
		assert.Equal(t, numbers(n), append([]int{}, slices.Collect(l.All())...))
	}
	var first []int
	for e := range snapshot.ListOf(numbers(1000)).All() {
		if len(first) == 3 {
			break
		}
		first = append(first, e)
	}
	assert.Equal(t, []int{10, 20, 30}, first)
}

func TestListSame(t *testing.T) {
	t.Parallel()
	n := numbers(300)
	l := snapshot.ListOf(n)
	assert.True(t, l.Same(snapshot.ListOf(n)), "one slice")
	assert.True(t, l.Same(l.With(nil)))
	assert.False(t, l.Same(snapshot.ListOf(numbers(300))), "another slice")
	assert.False(t, l.Same(l.With(map[int]int{299: 1})))
	assert.True(t, snapshot.List[int]{}.Same(snapshot.ListOf([]int{})))
}

func TestListWithChangesOnlyTheCopy(t *testing.T) {
	t.Parallel()
	l := snapshot.Concat(snapshot.ListOf(numbers(200)), snapshot.ListOf(numbers(3)), snapshot.ListOf(numbers(500)))
	want := l.Slice()
	was := slices.Clone(want)
	changes := map[int]int{0: 1, 199: 2, 200: 3, 202: 4, 203: 5, 702: 6}
	for i, e := range changes {
		want[i] = e
	}
	assert.Equal(t, want, l.With(changes).Slice())
	assert.Equal(t, was, l.Slice())
}

// change is what Diff calls with.
type change struct{ before, after int }

func plainDiff(before, after []int) []change {
	var out []change
	for _, e := range before {
		if !slices.Contains(after, e) {
			out = append(out, change{before: e})
		}
	}
	for _, e := range after {
		if !slices.Contains(before, e) {
			out = append(out, change{after: e})
		}
	}
	return out
}

// TestListDiff: whatever the Lists share, the differences are those of the slices.
func TestListDiff(t *testing.T) {
	t.Parallel()
	random := rand.New(rand.NewPCG(waittest.Seed(t), 2))
	for range 200 {
		low, high := numbers(random.IntN(400)), numbers(random.IntN(400))
		for i := range high {
			high[i] += 100_000
		}
		before := snapshot.Concat(snapshot.ListOf(low), snapshot.ListOf(high))
		var after snapshot.List[int]
		switch random.IntN(3) {
		case 0:
			after = snapshot.ListOf(before.Slice())
			if n := after.Len(); n > 0 {
				i := random.IntN(n)
				after = after.With(map[int]int{i: before.Slice()[i] + 1 + random.IntN(2)})
			}
		case 1:
			fewer := slices.DeleteFunc(slices.Clone(low), func(int) bool { return random.IntN(9) == 0 })
			after = snapshot.Concat(snapshot.ListOf(fewer), snapshot.ListOf(high))
		default:
			more := append(slices.Clone(low), 50_001)
			after = snapshot.Concat(snapshot.ListOf(more), snapshot.ListOf(high))
		}
		var got []change
		snapshot.Diff(before, after, cmp.Compare[int], func(a, b int) { got = append(got, change{a, b}) })
		order := func(a, b change) int { return cmp.Or(cmp.Compare(a.before, b.before), cmp.Compare(a.after, b.after)) }
		want := plainDiff(before.Slice(), after.Slice())
		slices.SortFunc(got, order)
		slices.SortFunc(want, order)
		require.Equal(t, want, got)
	}
}

func TestListDiffPassesOverSharedPieces(t *testing.T) {
	t.Parallel()
	before := snapshot.ListOf(numbers(100_000))
	compared := 0
	count := func(a, b int) int { compared++; return cmp.Compare(a, b) }
	var got []change
	snapshot.Diff(before, before.With(map[int]int{50_000: 500_011}), count, func(a, b int) { got = append(got, change{a, b}) })
	assert.ElementsMatch(t, []change{{500_010, 0}, {0, 500_011}}, got)
	assert.Less(t, compared, 10)
}

func TestProjectMakesOnlyWhatIsNew(t *testing.T) {
	t.Parallel()
	var made []int
	double := func(s, old, given int) int {
		if s == old {
			return given
		}
		made = append(made, s)
		return 2 * s
	}
	from := snapshot.ListOf(numbers(1000))
	first := snapshot.Project(snapshot.List[int]{}, from, snapshot.List[int]{}, double)
	assert.Len(t, made, 1000)
	made = nil
	next := from.With(map[int]int{500: 7})
	second := snapshot.Project(from, next, first, double)
	assert.Equal(t, []int{7}, made)
	assert.Equal(t, first.With(map[int]int{500: 14}).Slice(), second.Slice())
	made = nil
	assert.True(t, snapshot.Project(next, next, second, double).Same(second))
	assert.Empty(t, made)
	shorter := snapshot.ListOf(numbers(999))
	assert.Equal(t, first.Slice()[:999], snapshot.Project(next, shorter, second, double).Slice())
	assert.Len(t, made, 999, "of another shape: all anew")
}
