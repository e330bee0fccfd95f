package explain

import (
	"fmt"
	"os"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"sigs.k8s.io/yaml"
)

// TestAlertsHaveTheThresholdsOfCheck: the alerts about failures ring where check has a warning and a failure.
func TestAlertsHaveTheThresholdsOfCheck(t *testing.T) {
	t.Parallel()
	data, err := os.ReadFile("../../cmd/help/monitoring/rules.yaml")
	require.NoError(t, err)
	rules := struct {
		Spec struct {
			Groups []struct {
				Rules []struct{ Alert, Expr string }
			}
		}
	}{}
	require.NoError(t, yaml.Unmarshal(data, &rules))
	exprs := map[string]string{}
	for _, rule := range rules.Spec.Groups[0].Rules {
		exprs[rule.Alert] = rule.Expr
	}
	const by, all = "sum by (destination_cluster, destination_namespace, destination_service) ", "meshctl_requests_total"
	expr := func(window, share string, requests int) string {
		return fmt.Sprintf("%[1]s(rate(%[2]s{response_class=~\"5xx|none\"}[%[3]s]))\n  / %[1]s(rate(%[2]s[%[3]s])) %[4]s\nand %[1]s(increase(%[2]s[%[3]s])) >= %[5]d\n", by, all, window, share, requests)
	}
	assert.Equal(t, expr("15m", fmt.Sprintf("> %.2f", mostFailures/100), fewestRequests), exprs["MeshctlRequestsFail"])
	// PromQL has no test of chance: a count of failures stands for it.
	const byChance = 7
	failed := fmt.Sprintf("and %s(increase(%s{response_class=~\"5xx|none\"}[%dm])) > %d\n", by, all, lateMinutes, byChance)
	assert.Equal(t, expr(fmt.Sprintf("%dm", lateMinutes), ">= 1/3", fewestFailing)+failed, exprs["MeshctlManyRequestsFail"])
	for all := uint64(1); all <= 200; all++ {
		for bad := range all + 1 {
			n := failingCount{late: failedOf{failed: bad, all: all}}
			_, is := n.severity()
			assert.Equal(t, is, 3*bad >= all && all >= fewestFailing && bad > byChance, "%d of %d", bad, all)
		}
	}
}
