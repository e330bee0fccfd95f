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
	assert.False(t, slices.ContainsFunc(without, func(a access) bool {
		return slices.ContainsFunc([]string{"trafficpolicies", "accesspolicies", "virtualdestinations", "servicedependencies", "accesslogrecords"}, func(name string) bool {
			return strings.HasPrefix(a.resource, name)
		})
	}))
	var wanted []access
	for _, kind := range [][2]string{
		{"networking.mesh.gloo.solo.io", "trafficpolicies"}, {"networking.mesh.gloo.solo.io", "accesspolicies"},
		{"networking.enterprise.mesh.gloo.solo.io", "virtualdestinations"}, {"networking.enterprise.mesh.gloo.solo.io", "servicedependencies"},
		{"observability.enterprise.mesh.gloo.solo.io", "accesslogrecords"},
	} {
		wanted = append(wanted, access{verb: "list", group: kind[0], resource: kind[1]}, access{verb: "watch", group: kind[0], resource: kind[1]},
			access{verb: "patch", group: kind[0], resource: kind[1] + "/status"})
	}
	more := slices.DeleteFunc(slices.Clone(with), func(a access) bool { return slices.Contains(without, a) })
	assert.ElementsMatch(t, wanted, more)
}
