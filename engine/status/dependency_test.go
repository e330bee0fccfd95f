package status

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	enterprisev1beta1 "github.com/meshctl/meshctl/engine/api/enterprise/v1beta1"
	"github.com/meshctl/meshctl/engine/snapshot"
)

// TestUnlistedWorkloads: the status counts workloads that it does not list, and an
// issue stays as it is whatever its text.
func TestUnlistedWorkloads(t *testing.T) {
	t.Parallel()
	p := &snapshot.DependencyPlan{Dependency: &enterprisev1beta1.ServiceDependency{}}
	for i := range maxListed + 1 {
		p.Verdicts = append(p.Verdicts, snapshot.Verdict{
			Destination: snapshot.Ref{Kind: snapshot.Workload, Namespace: "n", Name: fmt.Sprint(i)}, Accepted: true,
		})
	}
	p.Issues = []snapshot.Issue{snapshot.Warnf(snapshot.SelectsNothing, "", "destinations: 1 more are not listed")}
	status, ok := dependencyStatus(p, nil).Value.(*enterprisev1beta1.ServiceDependencyStatus)
	require.True(t, ok)
	assert.Equal(t, []string{"destinations: 1 more are not listed", "workloads: 1 more are not listed"}, status.Warnings)
	assert.Len(t, status.Workloads, maxListed)
}
