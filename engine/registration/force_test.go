package registration_test

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/meshctl/meshctl/demo/local"
	"github.com/meshctl/meshctl/demo/sandboxtest"
	"github.com/meshctl/meshctl/demo/waittest"
	"github.com/meshctl/meshctl/engine/cluster"
	"github.com/meshctl/meshctl/engine/registration"
	"github.com/meshctl/meshctl/engine/snapshot"
)

func TestListAndForceOnADeadCluster(t *testing.T) {
	t.Parallel()
	servers := sandboxtest.PreparedAPIServers(t, sandboxtest.Preparation{}, translatedTypes())
	management, err := servers[0].Config()
	require.NoError(t, err)
	remote, err := servers[1].Config()
	require.NoError(t, err)
	id := planeID(t, management, "gloo-mesh")
	before := inventory(t, remote)
	_, err = registration.Register(t.Context(), registration.Options{Name: "cluster-1", RemoteConfig: management, MgmtConfig: management})
	require.NoError(t, err)
	options := registration.Options{Name: "cluster-2", RemoteConfig: remote, MgmtConfig: management}
	_, err = registration.Register(t.Context(), options)
	require.NoError(t, err)
	put(t, remote, snapshot.ServiceEntry, "default", "ours",
		map[string]string{snapshot.NetworkingOwnerLabel: "gloo-mesh", snapshot.ClusterLabel: "cluster-2"}, nil)
	put(t, management, snapshot.Mesh, "gloo-mesh", "istiod-istio-system-cluster-2",
		map[string]string{snapshot.DiscoveryOwnerLabel: "gloo-mesh", snapshot.DiscoveryClusterLabel: "cluster-2"}, nil)
	createSecret(t, management, "broken", cluster.SecretType, map[string][]byte{"kubeconfig": []byte("a: b")})
	put(t, management, snapshot.KubernetesCluster, "gloo-mesh", "broken", nil, nil)

	list := func() map[string]registration.ClusterStatus {
		all, err := registration.List(t.Context(), registration.ListOptions{MgmtConfig: management, Timeout: waittest.Limit()})
		require.NoError(t, err)
		out := map[string]registration.ClusterStatus{}
		for _, status := range all {
			out[status.Name] = status
		}
		return out
	}
	found := list()
	require.Len(t, found, 3)
	assert.Equal(t, snapshot.Healthy, found["cluster-1"].Health, found["cluster-1"].Reason)
	assert.Equal(t, snapshot.Healthy, found["cluster-2"].Health, found["cluster-2"].Reason)
	assert.Regexp(t, `^v1\.\d+`, found["cluster-2"].Version)
	assert.Equal(t, []registration.MeshStatus{{Name: "istiod-istio-system-cluster-2", Type: "unknown"}}, found["cluster-2"].Meshes)
	assert.Equal(t, registration.DefaultTokenTTL, found["cluster-2"].Expires.Sub(*found["cluster-2"].Issued))
	assert.Positive(t, found["cluster-2"].Latency)
	assert.Equal(t, snapshot.HealthInvalid, found["broken"].Health)
	assert.Contains(t, found["broken"].Reason, "its field a is not accepted")

	require.NoError(t, servers[1].Kill(t.Context(), local.APIServer))
	assert.Equal(t, snapshot.HealthUnreachable, list()["cluster-2"].Health)
	assert.Contains(t, list()["cluster-2"].Reason, "refuses connections")
	dead := registration.DeregisterOptions{Name: "cluster-2", MgmtConfig: management}
	managementBefore := inventory(t, management)
	_, err = registration.Deregister(t.Context(), dead)
	require.ErrorContains(t, err, "nothing was changed")
	require.ErrorContains(t, err, "--force")
	var unreachable *registration.UnreachableError
	require.ErrorAs(t, err, &unreachable)
	assert.Equal(t, managementBefore, inventory(t, management))

	dead.Force = true
	report, err := registration.Deregister(t.Context(), dead)
	require.NoError(t, err)
	commands := strings.Join(report.Leftovers, "\n")
	assert.Contains(t, commands, "kubectl delete serviceentries.networking.istio.io --all-namespaces --selector 'cluster.multicluster.solo.io=cluster-2,owner.networking.mesh.gloo.solo.io=gloo-mesh,plane.multicluster.solo.io="+id+"'")
	assert.Contains(t, commands, "--selector 'cluster.multicluster.solo.io=cluster-2,owner.networking.mesh.gloo.solo.io=gloo-mesh,!plane.multicluster.solo.io'")
	assert.Contains(t, commands, "kubectl delete clusterrolebinding cluster-2-gloomesh-remote-access-"+id+" --ignore-not-found")
	gone := without(managementBefore, inventory(t, management))
	assert.Equal(t, []string{"KubernetesCluster gloo-mesh/cluster-2", "Mesh gloo-mesh/istiod-istio-system-cluster-2", "Secret gloo-mesh/cluster-2"}, gone)
	record, err := sandboxtest.Clientset(t, management).CoreV1().ConfigMaps("gloo-mesh").Get(t.Context(), registration.LeftoverName("cluster-2"), metav1.GetOptions{})
	require.NoError(t, err)
	assert.Equal(t, commands, record.Data["commands"])
	assert.Equal(t, snapshot.HealthLeftover, list()["cluster-2"].Health)

	require.NoError(t, servers[1].Restart(t.Context(), local.APIServer))
	_, err = registration.Deregister(t.Context(), registration.DeregisterOptions{Name: "cluster-2", MgmtConfig: management, RemoteConfig: management})
	var wrong *registration.WrongClusterError
	require.ErrorAs(t, err, &wrong)
	report, err = registration.Deregister(t.Context(), registration.DeregisterOptions{Name: "cluster-2", MgmtConfig: management, RemoteConfig: remote})
	require.NoError(t, err)
	assert.Empty(t, report.Leftovers)
	finishNamespaces(t, remote)
	assert.Subset(t, keptTypes, without(inventory(t, remote), before))
	assert.NotContains(t, list(), "cluster-2")
}

func TestDeregisterWithoutAContextSaysWhatItMayNot(t *testing.T) {
	t.Parallel()
	const name = "contextless"
	config := sandboxtest.APIServer(t)
	_, err := registration.Register(t.Context(), registration.Options{Name: name, RemoteConfig: config, MgmtConfig: config,
		MgmtNamespace: name, RemoteNamespace: name + "-agent"})
	require.NoError(t, err)
	before := inventory(t, config)
	options := registration.DeregisterOptions{Name: name, MgmtConfig: config, MgmtNamespace: name}
	_, err = registration.Deregister(t.Context(), options)
	var missing *registration.PermissionError
	require.ErrorAs(t, err, &missing)
	assert.Contains(t, missing.Missing, "delete serviceaccounts/contextless in namespace contextless-agent")
	for _, key := range []string{"Secret contextless/contextless", "ServiceAccount contextless-agent/contextless", "KubernetesCluster contextless/contextless"} {
		assert.Equal(t, before[key], inventory(t, config)[key])
	}

	// With --force, the stored credential removes what it may: not its own rights.
	installTranslatedTypesOnce(t, config)
	put(t, config, snapshot.Gateway, name, "ours", map[string]string{snapshot.NetworkingOwnerLabel: name, snapshot.ClusterLabel: name}, nil)
	options.Force = true
	report, err := registration.Deregister(t.Context(), options)
	require.NoError(t, err)
	assert.NotEmpty(t, report.Leftovers)
	after := inventory(t, config)
	assert.NotContains(t, after, "Gateway contextless/ours")
	assert.NotContains(t, after, "Secret contextless/contextless")
	assert.Contains(t, after, "ServiceAccount contextless-agent/contextless")
	assert.Contains(t, after, "ConfigMap contextless/contextless-leftovers")

	// With a context, the rest goes; the record knows the namespace.
	options.RemoteConfig, options.Force = config, false
	_, err = registration.Deregister(t.Context(), options)
	require.NoError(t, err)
	after = inventory(t, config)
	assert.NotContains(t, after, "ServiceAccount contextless-agent/contextless")
	assert.NotContains(t, after, "ConfigMap contextless/contextless-leftovers")
}
