package create

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/meshctl/meshctl/wizards/wizardtest"
)

func TestRoleWizard(t *testing.T) {
	t.Parallel()
	file := filepath.Join(t.TempDir(), "role.yaml")
	script := wizardtest.New(t).
		PicksAll("What may be written? [spec]", "trafficPolicyScopes", "accessPolicyScopes").
		PicksAll("Which fields of TrafficPolicies? [spec.trafficPolicyScopes[0].trafficPolicyActions]", "REQUEST_TIMEOUT", "RETRIES").
		PicksAll("TrafficPolicies for which services?", "bookinfo.*").
		PicksAll("For requests of which callers?", "bookinfo.cluster-1").
		PicksAll("AccessPolicies for which services?", "bookinfo.*").
		PicksAll("Which callers may they name?", "*.*").
		Accepts("Name of the object?", "role").
		Says("No object would change in any cluster.").
		Picks("What next?", "save").
		Types("To which file?", file)
	_, stderr, err := wizard(t, script, "role", "--dir", bookinfo)
	require.NoError(t, err)
	manifest, err := os.ReadFile(file)
	require.NoError(t, err)
	assert.Contains(t, string(manifest), "identitySelectors")
	runEquivalent(t, stderr, manifest)
}

func TestRoleBindingWizard(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	management := filepath.Join(dir, "management")
	require.NoError(t, os.Mkdir(management, 0o700))
	require.NoError(t, os.WriteFile(filepath.Join(management, "role.yaml"), []byte(`apiVersion: rbac.enterprise.mesh.gloo.solo.io/v1
kind: Role
metadata: {name: team, namespace: gloo-mesh}
spec:
  accessLogRecordScopes: [{workloadSelectors: [{kubeWorkloadMatcher: {namespaces: [bookinfo], clusters: ["*"], labels: {"*": "*"}}}]}]
`), 0o600))
	file := filepath.Join(t.TempDir(), "binding.yaml")
	script := wizardtest.New(t).
		Picks("Which Role? [spec.roleRef]", "gloo-mesh/team").
		Rejects("Who gets it?", "ada", `"ada": must be user=NAME`).
		Rejects("Who gets it?", "serviceaccount=deployer", "must be user=NAME, group=NAME or serviceaccount=NAMESPACE/NAME").
		Types("Who gets it?", "user=ada").
		Types("Who else, besides 1 subject?", "serviceaccount=ci/deployer").
		Accepts("Who else, besides 2 subjects?", "").
		Accepts("Name of the object?", "team").
		Picks("What next?", "save").
		Types("To which file?", file)
	_, stderr, err := wizard(t, script, "rolebinding", "--dir", dir)
	require.NoError(t, err)
	manifest, err := os.ReadFile(file)
	require.NoError(t, err)
	assert.Contains(t, string(manifest), "kind: ServiceAccount")
	runEquivalent(t, stderr, manifest)
}
