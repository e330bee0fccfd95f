package istio

import (
	"testing"

	"github.com/stretchr/testify/assert"
)

// TestPercentIsWhatIstioCounts: Istio cuts value*10,000 off to a whole number of
// millionths (TestProxiesMatchPlan has it from proxies).
func TestPercentIsWhatIstioCounts(t *testing.T) {
	t.Parallel()
	for millionths := range uint32(1_000_001) {
		written := float64(millionths) / 10_000
		if got := uint32(percent(written).Value * 10_000); got != millionths {
			t.Fatalf("%v%%: %d millionths, not %d", written, got, millionths)
		}
	}
	assert.InDelta(t, 33.3, percent(33.3).Value, 1e-12)
	for _, exact := range []float64{0, 0.5, 12.5, 100} {
		assert.InDelta(t, exact, percent(exact).Value, 0)
	}
}
