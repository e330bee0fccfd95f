package registration

import (
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
)

// TestRulesForPoliciesOfUsers: what users write in a cluster may be read, and be told what became of it, only if that was asked for; it
// may never be written.
func TestRulesForPoliciesOfUsers(t *testing.T) {
	t.Parallel()
	without, with := ruleAccesses(remoteRules(false)), ruleAccesses(remoteRules(true))
	const group = "networking.mesh.gloo.solo.io"
	assert.False(t, slices.ContainsFunc(without, func(a access) bool {
		return strings.HasPrefix(a.resource, "trafficpolicies") || strings.HasPrefix(a.resource, "accesspolicies")
	}))
	more := slices.DeleteFunc(slices.Clone(with), func(a access) bool { return slices.Contains(without, a) })
	assert.ElementsMatch(t, []access{
		{verb: "list", group: group, resource: "trafficpolicies"}, {verb: "watch", group: group, resource: "trafficpolicies"},
		{verb: "list", group: group, resource: "accesspolicies"}, {verb: "watch", group: group, resource: "accesspolicies"},
		{verb: "patch", group: group, resource: "trafficpolicies/status"}, {verb: "patch", group: group, resource: "accesspolicies/status"},
	}, more)
}
