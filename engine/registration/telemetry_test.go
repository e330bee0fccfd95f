package registration_test

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/meshctl/meshctl/demo/sandboxtest"
	multiclusterv1alpha1 "github.com/meshctl/meshctl/engine/api/multicluster/v1alpha1"
	"github.com/meshctl/meshctl/engine/kube"
	"github.com/meshctl/meshctl/engine/registration"
)

// TestTelemetry: the door stands in the KubernetesCluster, the right for it in the cluster as long as it is needed, and with --dry-run nothing.
func TestTelemetry(t *testing.T) {
	t.Parallel()
	management, remote := translatedPair(t)
	id := planeID(t, management, "gloo-mesh")
	_, err := registration.Register(t.Context(), registration.Options{Name: "cluster-2", RemoteConfig: remote, MgmtConfig: management})
	require.NoError(t, err)
	stored := storedConfig(t, sandboxtest.Secret(t, management, "gloo-mesh", "cluster-2"))
	may := func() bool {
		allowed, err := kube.AskForward(t.Context(), stored, "", "")
		require.NoError(t, err)
		return allowed
	}
	options := registration.TelemetryOptions{Name: "cluster-2", MgmtConfig: management, RemoteConfig: remote, DryRun: true}
	set := func(want multiclusterv1alpha1.Telemetry) (actions []string, report *registration.TelemetryReport) {
		options.Want = want
		report, err := registration.SetTelemetry(t.Context(), options)
		require.NoError(t, err)
		for _, c := range report.Changes {
			actions = append(actions, string(c.Action)+" "+c.Kind)
		}
		return actions, report
	}
	all := []string{"created ClusterRole", "created ClusterRoleBinding", "updated KubernetesCluster"}
	before := inventory(t, remote)
	actions, _ := set(multiclusterv1alpha1.Telemetry{})
	assert.Equal(t, all, actions)
	assert.Equal(t, before, inventory(t, remote))
	assert.False(t, may())

	options.DryRun = false
	actions, report := set(multiclusterv1alpha1.Telemetry{})
	assert.Equal(t, all, actions)
	assert.Empty(t, report.Rights)
	assert.Equal(t, multiclusterv1alpha1.TelemetryDoorScrape, report.After.Door)
	assert.True(t, may())
	actions, _ = set(multiclusterv1alpha1.Telemetry{Door: "scrape"})
	assert.Equal(t, []string{"unchanged ClusterRole", "unchanged ClusterRoleBinding", "unchanged KubernetesCluster"}, actions)

	options.Want = multiclusterv1alpha1.Telemetry{Door: "agent"}
	_, err = registration.SetTelemetry(t.Context(), options)
	assert.ErrorContains(t, err, "choose --door scrape or prometheus")
	options.Want = multiclusterv1alpha1.Telemetry{Door: "prometheus", Prometheus: &multiclusterv1alpha1.PrometheusSource{Url: "ftp://p"}}
	_, err = registration.SetTelemetry(t.Context(), options)
	assert.ErrorContains(t, err, "must be a URL such as https://prometheus.example:9090")
	assert.True(t, may(), "nothing is taken before it is known that the rest can be written")

	// Registering again leaves it as it is.
	_, err = registration.Register(t.Context(), registration.Options{Name: "cluster-2", RemoteConfig: remote, MgmtConfig: management, KeepCredential: true})
	require.NoError(t, err)
	actions, _ = set(multiclusterv1alpha1.Telemetry{Door: "prometheus", Prometheus: &multiclusterv1alpha1.PrometheusSource{Url: "https://p", MatchLabels: map[string]multiclusterv1alpha1.MatchedLabel{"cluster": "c"}}})
	assert.Equal(t, []string{"updated KubernetesCluster", "deleted ClusterRoleBinding", "deleted ClusterRole"}, actions)
	actions, report = set(multiclusterv1alpha1.Telemetry{Door: "none"})
	assert.Equal(t, []string{"updated KubernetesCluster"}, actions)
	assert.Equal(t, multiclusterv1alpha1.TelemetryDoorPrometheus, report.Before.Door)

	// Without the cluster's context, the right is printed; deregistering takes it.
	options.RemoteConfig = nil
	actions, report = set(multiclusterv1alpha1.Telemetry{})
	assert.Equal(t, []string{"updated KubernetesCluster"}, actions)
	assert.Len(t, report.Rights, 2)
	options.RemoteConfig = remote
	set(multiclusterv1alpha1.Telemetry{})
	_, err = registration.Deregister(t.Context(), registration.DeregisterOptions{Name: "cluster-2", RemoteConfig: remote, MgmtConfig: management})
	require.NoError(t, err)
	_, err = sandboxtest.Clientset(t, remote).RbacV1().ClusterRoles().Get(t.Context(), registration.ReadProxiesName("cluster-2", id), metav1.GetOptions{})
	assert.True(t, apierrors.IsNotFound(err), "%v", err)
	_, err = registration.SetTelemetry(t.Context(), options)
	var unknown *registration.NotRegisteredError
	assert.ErrorAs(t, err, &unknown)

}
