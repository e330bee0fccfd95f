package wizards

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/meshctl/meshctl/engine/offline"
)

// TestServicesHaveHints: an option says what concerns the service already.
func TestServicesHaveHints(t *testing.T) {
	t.Parallel()
	input, _, err := offline.Load(offline.Dir("../testdata/translate/bookinfo/in"))
	require.NoError(t, err)
	labels := map[string]string{}
	for _, option := range NewCatalog(input, time.Now()).serviceOptions() {
		labels[option.Value] = option.Label()
	}
	assert.Equal(t, "reviews.bookinfo.cluster-1 (shifted by reviews-shift; limited by productpage-calls)", labels["reviews.bookinfo.cluster-1"])
	assert.Equal(t, "reviews.bookinfo.cluster-2 (configured by patient; limited by productpage-calls)", labels["reviews.bookinfo.cluster-2"])
	assert.Equal(t, "istio-eastwestgateway.istio-system.cluster-1 (no ready pods)", labels["istio-eastwestgateway.istio-system.cluster-1"])
	assert.Equal(t, "productpage.bookinfo.cluster-1", labels["productpage.bookinfo.cluster-1"])
}
