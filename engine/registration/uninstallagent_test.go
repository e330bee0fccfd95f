package registration_test

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/rest"

	"github.com/meshctl/meshctl/demo/sandboxtest"
	"github.com/meshctl/meshctl/demo/waittest"
	"github.com/meshctl/meshctl/engine/cluster"
	"github.com/meshctl/meshctl/engine/registration"
	"github.com/meshctl/meshctl/engine/snapshot"
)

// TestUninstallThroughAgents: a cluster to which no context leads is left through its agent, and nothing changes if that is away.
func TestUninstallThroughAgents(t *testing.T) {
	t.Parallel()
	management, _, deregister := relayedPair(t)
	plan := func(o registration.UninstallOptions) (*registration.Uninstallation, registration.UninstalledCluster) {
		t.Helper()
		o.Config = management
		found, err := registration.PlanUninstall(t.Context(), o)
		require.NoError(t, err)
		require.Len(t, found.Clusters, 1)
		return found, found.Clusters[0]
	}
	relayed := registration.UninstallOptions{Store: deregister.Store}

	_, c := plan(registration.UninstallOptions{})
	assert.Equal(t, "no context of the kubeconfig leads to it", c.Problem, "there is nobody who knows its agent")
	_, c = plan(relayed)
	assert.Contains(t, c.Problem, "no `meshctl serve` runs that the agent could hear")
	serves(t, management)
	leaves(t, management, "", "", "LOST")
	found, c := plan(relayed)
	assert.Equal(t, "no context of the kubeconfig leads to it, and its agent is away for 3h: its agent has no connection: it broke", c.Problem)
	before := inventory(t, management)
	_, err := found.Run(t.Context())
	require.ErrorContains(t, err, "nothing was changed")
	require.ErrorContains(t, err, "with --force")
	assert.Equal(t, names(before), names(inventory(t, management)))
	assert.NotContains(t, kubernetesCluster(t, management, "cluster-2").GetAnnotations(), snapshot.LeavingAnnotation)

	leaves(t, management, snapshot.LeavingDone, "nothing is left", "CONNECTED")
	_, c = plan(registration.UninstallOptions{Store: deregister.Store, KeepTraffic: true})
	assert.Contains(t, c.Problem, "its agent would delete what is to stay")
	found, c = plan(relayed)
	assert.Equal(t, registration.UninstalledCluster{Name: "cluster-2", Objects: -1, Agent: true}, c)
	report, err := uninstalls(t, management, found)
	require.NoError(t, err, "%v", report)
	assert.Empty(t, report.Leftovers)
	assert.Contains(t, strings.Join(report.Notes, "\n"), "kubectl delete namespace gloo-mesh")
	for key := range inventory(t, management) {
		assert.NotContains(t, key, "cluster-2")
	}
}

// TestUninstallWithoutTheAgent: by force, an absent agent keeps nobody waiting. What cleans its cluster is printed, and no debt is left,
// which nobody would collect.
func TestUninstallWithoutTheAgent(t *testing.T) {
	t.Parallel()
	management, store, deregister := relayedPair(t)
	serves(t, management)
	leaves(t, management, "", "", "LOST")
	leave := "kubectl delete clusterrole " + snapshot.RelayLeaveName(planeID(t, management, "gloo-mesh"))
	found, err := registration.PlanUninstall(t.Context(), registration.UninstallOptions{Config: management, Store: deregister.Store, Force: true})
	require.NoError(t, err)
	report, err := uninstalls(t, management, found)
	require.NoError(t, err)
	assert.Contains(t, strings.Join(report.Leftovers, "\n"), leave)
	assert.False(t, store.owes)
}

// uninstalls runs an uninstallation, and ends the serve of the test when no cluster is registered any more.
func uninstalls(t *testing.T, management *rest.Config, found *registration.Uninstallation) (registration.Report, error) {
	t.Helper()
	client, err := dynamic.NewForConfig(management)
	require.NoError(t, err)
	type result struct {
		report registration.Report
		err    error
	}
	done := make(chan result, 1)
	go func() {
		report, err := found.Run(t.Context())
		done <- result{report, err}
	}()
	waittest.Until(t, "no cluster is registered", func() bool {
		list, err := client.Resource(snapshot.KubernetesCluster.GroupVersionResource()).Namespace("gloo-mesh").List(t.Context(), metav1.ListOptions{})
		return err == nil && len(list.Items) == 0
	})
	require.NoError(t, sandboxtest.Clientset(t, management).CoordinationV1().Leases("gloo-mesh").Delete(t.Context(), cluster.LeaseName, metav1.DeleteOptions{}))
	r := <-done
	return r.report, r.err
}
