package cluster_test

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/assert"

	"github.com/meshctl/meshctl/engine/cluster"
	"github.com/meshctl/meshctl/engine/kube"
	"github.com/meshctl/meshctl/engine/snapshot"
)

// TestCausesOfCredentials: what is wrong with a credential is told as one cause of an outage.
func TestCausesOfCredentials(t *testing.T) {
	t.Parallel()
	for want, errs := range map[snapshot.Code][]error{
		snapshot.DifferentCluster:  {fmt.Errorf("probe: %w", &cluster.OtherClusterError{}), &cluster.SameClusterError{}},
		snapshot.CredentialMissing: {cluster.ErrNoSecret},
		snapshot.CredentialInvalid: {&cluster.KubeconfigError{Reason: "broken"}},
		snapshot.CredentialRefused: {&cluster.ExpiredError{}},
		snapshot.ServerUnanswered:  {&cluster.UnidentifiedError{}},
	} {
		for _, err := range errs {
			assert.Equal(t, want, kube.Cause(err), "%T", err)
		}
	}
}
