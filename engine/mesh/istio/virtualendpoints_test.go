package istio

import (
	"math/rand/v2"
	"slices"
	"strconv"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/labels"

	"github.com/meshctl/meshctl/demo/waittest"
	"github.com/meshctl/meshctl/engine/snapshot"
)

// TestOverlapping: of endpoints with one address a proxy takes the first one that the
// subset selects. It stands for all pods of the subset; a subset that no policy uses
// (yet, or any more) has one, too.
func TestOverlapping(t *testing.T) {
	t.Parallel()
	random := rand.New(rand.NewPCG(waittest.Seed(t), 2))
	some := func() map[string]string {
		out := map[string]string{}
		for _, key := range []string{"version", "tier", "track"} {
			if n := random.IntN(4); n > 0 {
				out[key] = []string{"", "a", "b"}[n-1]
			}
		}
		return out
	}
	for range 2000 {
		var pods []map[string]string
		for range 1 + random.IntN(8) {
			pods = append(pods, some())
		}
		var plan snapshot.VirtualDestinationPlan
		for n := range random.IntN(4) {
			plan.Subsets = append(plan.Subsets, snapshot.Subset{Name: strconv.Itoa(n), Labels: some()})
		}
		v := virtualBuilder{plan: &plan}
		groups := v.overlapping(groupByLabels(pods, 1))

		first := func(subset map[string]string) (found bool, weight, selected uint32) {
			selector := labels.SelectorFromSet(subset)
			at := slices.IndexFunc(groups, func(g labelGroup) bool { return selector.Matches(labels.Set(g.labels)) })
			for _, pod := range pods {
				if selector.Matches(labels.Set(pod)) {
					selected++
				}
			}
			if at < 0 {
				return false, 0, selected
			}
			return true, groups[at].weight, selected
		}
		for _, s := range append(plan.Subsets, snapshot.Subset{}) {
			found, weight, selected := first(s.Labels)
			require.Equal(t, selected > 0, found, "%v of %v", s.Labels, groups)
			require.Equal(t, selected, weight, "%v of %v", s.Labels, groups)
		}
		found, _, selected := first(some())
		assert.Equal(t, selected > 0, found)
	}
}
