package engine_test

import (
	"testing"

	"github.com/stretchr/testify/assert"

	"github.com/meshctl/meshctl/engine"
	networkingv1 "github.com/meshctl/meshctl/engine/api/networking/v1"
	"github.com/meshctl/meshctl/engine/snapshot"
)

// TestPoliciesOfClustersAreNotAudited: one that asks for it is rejected, and refuses nobody.
func TestPoliciesOfClustersAreNotAudited(t *testing.T) {
	t.Parallel()
	in := reachWorld()
	p := localAccess("audited", networkingv1.AccessPolicySpec{Action: networkingv1.AccessDeny, Enforcement: networkingv1.EnforcementAudit})
	before, after := engine.Translate(in), engine.Translate(withLocal(t, in, p))
	same(t, before.Output.Parts, after.Output.Parts)
	assert.Contains(t, issuesOf(planOf(t, after, p)), snapshot.FieldUnsupported)
	assert.Nil(t, after.Audited)
}
