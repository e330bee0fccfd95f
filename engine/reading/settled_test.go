package reading_test

import (
	"testing"

	"github.com/stretchr/testify/assert"

	commonv1 "github.com/meshctl/meshctl/engine/api/common/v1"
	"github.com/meshctl/meshctl/engine/reading"
)

// TestSettledText: each outcome says what is known, and no more.
func TestSettledText(t *testing.T) {
	t.Parallel()
	for want, c := range map[string]struct {
		settled reading.Settled
		known   bool
	}{
		"Nothing serves: it takes effect when `meshctl serve` runs.": {reading.Settled{Unserved: true}, false},
		"In force in cluster-1, cluster-2.": {
			reading.Settled{State: commonv1.ApprovalStateAccepted, Clusters: []string{"cluster-1", "cluster-2"}}, true,
		},
		"Accepted; nothing had to be written for it in any cluster.": {reading.Settled{State: commonv1.ApprovalStateAccepted}, true},
		"`meshctl serve` accepted it, but not all clusters were seen to have it within 10s; `meshctl check` compares them.": {
			reading.Settled{State: commonv1.ApprovalStateAccepted, Unseen: true, Clusters: []string{"cluster-1"}}, false,
		},
		"`meshctl serve` has not processed it yet; `meshctl describe` shows when it has.": {reading.Settled{State: commonv1.ApprovalStatePending}, false},
		"It is INVALID: no such service.":                                                 {reading.Settled{State: commonv1.ApprovalStateInvalid, Reason: "no such service"}, true},
	} {
		assert.Equal(t, want, c.settled.Text())
		assert.Equal(t, c.known, c.settled.Known(), want)
	}
}
