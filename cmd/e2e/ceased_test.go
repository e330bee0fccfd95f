package e2e

import (
	"context"
	"fmt"
	"strings"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/meshctl/meshctl/demo/kube"
)

const guarded = `
apiVersion: networking.mesh.gloo.solo.io/v1
kind: AccessPolicy
metadata: {name: details-guard, namespace: gloo-mesh}
spec:
  destinationSelector:
  - kubeServiceMatcher: {labels: {app: details}, clusters: [cluster-1]}
`

// reportsCeasedPolicy: a policy that was in force and now selects nothing gets one
// warning.
func (w *environment) reportsCeasedPolicy() {
	w.apply("cluster-1", []byte(guarded))
	w.awaitState("accesspolicies", "details-guard", "ACCEPTED")
	w.awaitEnforced("ACCEPTED", "")
	_, err := w.dynamic["cluster-1"].Resource(kube.Policies("accesspolicies")).Namespace(mgmt).Patch(w.t.Context(), "details-guard", types.JSONPatchType,
		[]byte(`[{"op":"replace","path":"/spec/destinationSelector/0/kubeServiceMatcher/labels/app","value":"nothing"}]`), metav1.PatchOptions{})
	require.NoError(w.t, err)
	w.awaitEnforced("ACCEPTED", "generation 1 was in force")

	// Neither its own status update nor other policies cause another update.
	before := w.version()
	w.apply("cluster-1", []byte(nowhere))
	w.awaitState("trafficpolicies", "nowhere", "INVALID")
	w.delete("cluster-1", kube.Policies("trafficpolicies"), mgmt, "nowhere")
	assert.Equal(w.t, before, w.version())
}

// stillReportsCeasedPolicy: the warning survives a restart of the management plane.
func (w *environment) stillReportsCeasedPolicy() {
	w.awaitEnforced("ACCEPTED", "generation 1 was in force")
	w.delete("cluster-1", kube.Policies("accesspolicies"), mgmt, "details-guard")
}

func (w *environment) awaitEnforced(state, warning string) {
	w.t.Helper()
	w.until("the status of details-guard says what is in force", func(context.Context) error {
		o, err := w.object("cluster-1", kube.Policies("accesspolicies"), mgmt, "details-guard")
		if err != nil {
			return err
		}
		warnings := ""
		if list := field(o, "status", "warnings"); list != nil {
			warnings = fmt.Sprint(list)
		}
		if field(o, "status", "state") != state || field(o, "status", "observedGeneration") != o.GetGeneration() ||
			field(o, "status", "lastEnforcedGeneration") != int64(1) || strings.Contains(warnings, "in force") != (warning != "") || !strings.Contains(warnings, warning) {
			return fmt.Errorf("its status is %v", o.Object["status"])
		}
		return nil
	})
}

func (w *environment) version() string {
	w.t.Helper()
	o, err := w.object("cluster-1", kube.Policies("accesspolicies"), mgmt, "details-guard")
	require.NoError(w.t, err)
	return o.GetResourceVersion()
}
